# Rollcall as one static program. It needs a PostgreSQL of its own beside it: set DATABASE_URL.
#   docker build -t rollcall .
#   docker run -p 8080:8080 -e DATABASE_URL=postgres://... -e GEONODE_SCRAPER_API_KEY=... -v rollcall:/var/lib/rollcall rollcall

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/rollcall ./cmd/rollcall
# The data folder holds the secret key when no setting gives one. Its owner is the user below.
RUN mkdir -p /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/rollcall /usr/local/bin/rollcall
COPY --from=build --chown=65532:65532 --chmod=700 /out/data /var/lib/rollcall
USER 65532:65532
# Inside a container every interface is the container's own; what is reachable is decided by -p.
ENV ROLLCALL_LISTEN=:8080 \
    ROLLCALL_DATA_DIR=/var/lib/rollcall \
    ROLLCALL_LOG_FORMAT=json
VOLUME /var/lib/rollcall
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/rollcall", "health"]
# SIGTERM finishes what is in flight; allow ROLLCALL_SHUTDOWN_GRACE (25s) before a kill: docker stop -t 30.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/rollcall"]
CMD ["serve"]
