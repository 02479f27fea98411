package views_test

import (
	"strings"
	"time"

	"rollcall/views"
)

func peopleStories() []story {
	users := views.UsersProps{Layout: layout("Users", views.SectionUsers, views.RoleAdmin), Users: []views.UserRow{
		{ID: "2", Name: "alice", Role: views.RoleAnalyst, CreatedAt: before(900 * time.Hour), LastSeen: before(time.Minute)},
		{ID: "1", Name: "carol", Role: views.RoleAdmin, CreatedAt: before(950 * time.Hour), LastSeen: now(), Self: true},
		{ID: "4", Name: "dave", Role: views.RoleOperator, CreatedAt: before(400 * time.Hour), LastSeen: before(300 * time.Hour), Disabled: true},
		{ID: "3", Name: hostile, Role: views.RoleOperator, CreatedAt: before(90 * time.Hour)},
	}}
	waiting := users
	waiting.Invites = []views.InviteRow{
		{ID: "9", Name: "erin", Role: views.RoleOperator, By: "carol", CreatedAt: before(time.Hour), ExpiresAt: now().Add(71 * time.Hour)},
		{ID: "8", Name: "alice", Role: views.RoleAnalyst, Reset: true, By: hostile, CreatedAt: before(2 * time.Hour), ExpiresAt: now().Add(22 * time.Hour)},
		{ID: "5", Name: hostile, Role: views.RoleAnalyst, By: "carol", CreatedAt: before(100 * time.Hour), ExpiresAt: before(28 * time.Hour), Expired: true},
	}
	refused := users
	refused.Name, refused.Role, refused.Errors = "Alice", views.RoleAdmin, views.Errors{"name": "There is an account of that name already."}
	return []story{
		{"users", views.Users(users)},
		{"users-links", views.Users(waiting)},
		{"users-refused", views.Users(refused)},
		{"user", views.OneUser(oneUser())},
		{"user-disabled", views.OneUser(disabledUser())},
		{"user-self", views.OneUser(ownUser())},
		{"link", views.OneTimeLink(views.LinkProps{
			Layout: layout("One-time link", views.SectionUsers, views.RoleAdmin), Name: "erin", Whole: true,
			Link: "https://rollcall.example.com/invite/" + strings.Repeat("Zx3-", 10) + "abc", ExpiresAt: now().Add(72 * time.Hour),
		})},
		{"link-path", views.OneTimeLink(views.LinkProps{
			Layout: layout("One-time link", views.SectionUsers, views.RoleAdmin), Name: hostile, Reset: true,
			Link: "/invite/" + strings.Repeat("Zx3-", 10) + "abc", ExpiresAt: now().Add(24 * time.Hour),
		})},
		{"link-shown", views.OneTimeLink(views.LinkProps{
			Layout: layout("One-time link", views.SectionUsers, views.RoleAdmin), Name: "erin", Whole: true, ExpiresAt: now().Add(72 * time.Hour),
		})},
		{"invite", views.Invite(views.InviteProps{Layout: layout("Welcome", "", ""), Path: "/invite/abc", Name: "erin", Role: views.RoleOperator})},
		{"invite-reset", views.Invite(views.InviteProps{
			Layout: layout("Set a new password", "", ""), Path: "/invite/abc", Name: "alice", Role: views.RoleAnalyst, Reset: true, SignedIn: "carol",
			Errors: views.Errors{"password": "A password has at least 10 characters.", "password_again": "The two passwords differ."},
		})},
		{"invite-gone", views.InviteGone(layout("This link can't be used", "", ""))},
		{"account", views.Account(accountStory())},
		{"account-refused", views.Account(accountRefused())},
		{"audit", views.Audit(auditStory())},
		{"audit-refused", views.Audit(views.AuditProps{
			Layout: layout("Audit log", views.SectionAudit, views.RoleAdmin), Since: hostile, ID: "7", Zone: "UTC", Filtered: true, CSV: "/audit.csv", JSONL: "/audit.jsonl",
			Errors: views.Errors{"since": "\"yesterday\" is no time. Write it like 2026-11-29 14:00, or 2026-11-29 for the day.", "kind": "Choose what \"7\" is the id or the name of."},
		})},
		{"audit-none", views.Audit(views.AuditProps{Layout: layout("Audit log", views.SectionAudit, views.RoleAdmin), Zone: "UTC", CSV: "/audit.csv", JSONL: "/audit.jsonl"})},
		{"audit-further", views.Audit(views.AuditProps{
			Layout: layout("Audit log", views.SectionAudit, views.RoleAdmin), Who: "alice", What: "user.role", Zone: "UTC", Filtered: true,
			Whats: []views.Option{{Value: "user.role", Text: "user.role"}}, Pager: views.Pager{Older: "/audit?who=alice&from=x"}, CSV: "/audit.csv", JSONL: "/audit.jsonl",
		})},
	}
}

func oneUser() views.UserProps {
	return views.UserProps{
		Layout: layout("alice", views.SectionUsers, views.RoleAdmin), ID: "2", Name: "alice", Role: views.RoleAnalyst, CreatedAt: before(900 * time.Hour),
		LastSeen: before(time.Hour), PasswordChanged: before(500 * time.Hour), Sessions: views.Known(2), AuditBy: "/audit?who=alice", AuditOf: "/audit?id=alice&kind=user",
		Link: &views.InviteRow{ID: "8", Name: "alice", Reset: true},
	}
}

func disabledUser() views.UserProps {
	u := oneUser()
	u.Layout.Title, u.Name, u.DisabledAt, u.Sessions, u.Link = "Somebody", hostile, before(30*time.Hour), views.Known(0), nil
	return u
}

func ownUser() views.UserProps {
	u := oneUser()
	u.Layout.Title, u.Name, u.Role, u.Self = "carol", "carol", views.RoleAdmin, true
	return u
}

func accountStory() views.AccountProps {
	return views.AccountProps{
		Layout: layout("Account", views.SectionAccount, views.RoleAnalyst), Zone: "Europe/Berlin", Theme: "dark",
		Zones: []views.ZoneGroup{{Zones: []string{"UTC"}}, {Name: "Africa", Zones: []string{"Africa/Lagos"}}, {Name: "Europe", Zones: []string{"Europe/Berlin", "Europe/London"}}},
		Sessions: []views.SessionRow{
			{ID: "12", CreatedAt: before(time.Hour), LastSeen: now(), EndsAt: now().Add(167 * time.Hour), Source: "192.0.2.7", Browser: "Firefox 140 on Linux", Agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", This: true},
			{ID: "9", CreatedAt: before(50 * time.Hour), LastSeen: before(3 * time.Hour), EndsAt: now().Add(118 * time.Hour), Source: "2001:db8:1:2:3:4:5:6", Browser: hostile, Agent: hostile},
			{ID: "8", CreatedAt: before(70 * time.Hour), LastSeen: before(9 * time.Hour), EndsAt: now().Add(98 * time.Hour)},
		},
	}
}

func accountRefused() views.AccountProps {
	p := accountStory()
	p.Sessions, p.Zone, p.Theme = p.Sessions[:1], "", ""
	p.Errors = views.Errors{"time_zone": "No time zone is called \"Mars/Olympus\". They are named like Europe/Berlin.", "old_password": "This is not your present password."}
	return p
}

func auditStory() views.AuditProps {
	both := func(name, was, is string) views.AuditChange {
		return views.AuditChange{Name: name, Before: views.AuditValue{Text: was}, After: views.AuditValue{Text: is}, Was: true, Is: true}
	}
	return views.AuditProps{
		Layout: layout("Audit log", views.SectionAudit, views.RoleAdmin), Who: "carol", Kind: "user", Since: "2026-11-29", Zone: "Europe/Berlin", Filtered: true,
		Whats: []views.Option{{Value: "user.role", Text: "user.role"}, {Value: "user.sign_in", Text: "user.sign_in"}}, Kinds: []views.Option{{Value: "user", Text: "user"}},
		CSV: "/audit.csv?who=carol", JSONL: "/audit.jsonl?who=carol", Pager: views.Pager{Older: "/audit?from=abc"},
		Rows: []views.AuditRow{
			{At: before(time.Minute), Who: "carol", WhoLink: "/audit?who=carol", Source: "192.0.2.7", What: "user.role", Kind: "user", ID: "dave", Link: "/audit?kind=user&id=dave", Changes: []views.AuditChange{both("role", "analyst", "operator")}},
			{At: before(2 * time.Minute), Source: "198.51.100.9", What: "user.sign_in_failed", Kind: "user", ID: hostile, Link: "/audit?kind=user&id=x"},
			{At: before(time.Hour), Who: "root", WhoLink: "/audit?who=root", Source: "command line", What: "user.add", Kind: "user", ID: "erin", Link: "/audit?kind=user&id=erin", Changes: []views.AuditChange{{Name: "role", After: views.AuditValue{Text: "admin"}, Is: true}, {Name: "made", After: views.AuditValue{At: before(time.Hour)}, Is: true}}},
			{At: before(2 * time.Hour), Who: hostile, WhoLink: "/audit?who=x", Source: "192.0.2.7", What: "webhook.describe", Kind: "webhook", ID: "3", Link: "/webhooks/3", Changes: []views.AuditChange{both("description", hostile, "(empty)"), {Name: "choices.left", Before: views.AuditValue{Text: "1"}, Was: true}, {After: views.AuditValue{Text: "too large to keep"}, Is: true}}},
			{At: before(3 * time.Hour), Who: "bob", WhoLink: "/audit?who=bob", Source: "192.0.2.8", What: "reconcile.run", Kind: "reconcile"},
			{At: before(4 * time.Hour), Who: "bob", WhoLink: "/audit?who=bob", Source: "192.0.2.8", What: "other"},
		},
	}
}
