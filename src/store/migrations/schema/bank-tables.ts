/**
 * Statements that create the bank of a shared database: for each account the amount lent (`leased`) and the
 * number of recalls (`epoch`), the leases, and the expiry of each node. `docs/ledger.md: Many nodes`.
 */
export const BANK_TABLES = [
  ...['users', 'tokens', 'budget_periods'].map(
    (table) => `alter table ${table}
     add column leased bigint not null default 0 constraint ${table}_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
  ),
  // Identity of the bank, which a node's local file remembers, so that it never reports to another one.
  'alter table store_identity add column bank text not null default gen_random_uuid()::text',
  'create table nodes (node text primary key, expires timestamptz not null)',
  `create table leases (
     account text not null,
     node text not null,
     epoch bigint not null,
     amount bigint not null constraint leases_amount check (amount >= 0),
     held bigint not null default 0 constraint leases_held check (held >= 0),
     estimate bigint not null default 0 constraint leases_estimate check (estimate >= 0),
     primary key (account, node)
   )`,
  'create index leases_by_node on leases (node)',
  // Estimated charges of lost nodes, withdrawn if the node comes back.
  `create table lost_estimates (
     node text not null,
     usage_id text not null,
     token_id bigint not null,
     user_id bigint not null,
     quota bigint not null,
     primary key (node, usage_id)
   )`,
  `create table lost_budgets (
     node text not null,
     account text not null,
     quota bigint not null,
     primary key (node, account)
   )`,
  // Key that the database signs its messages with, as both blocks of its HMAC.
  `create table message_key (
     id integer primary key check (id = 1),
     inner_block bytea not null,
     outer_block bytea not null
   )`,
  // Counts of calls under way. Not logged: they are empty after a crash of the server.
  `create unlogged table call_generation (
     id integer primary key check (id = 1),
     born_at timestamptz not null
   )`,
  `create unlogged table call_nodes (
     node text primary key,
     seen_at timestamptz not null
   )`,
  `create unlogged table call_places (
     subject text not null,
     node text not null,
     held bigint not null,
     primary key (subject, node)
   )`,
]
