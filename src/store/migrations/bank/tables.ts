/**
 * Statements that create the bank: for each account the amount lent (`leased`) and the number of recalls
 * (`epoch`), the leases, and the expiry of each node. `docs/ledger.md: Many nodes`.
 */
export const TABLES = [
  `alter table users
     add column leased bigint not null default 0 constraint users_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
  `alter table tokens
     add column leased bigint not null default 0 constraint tokens_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
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
     day bigint not null,
     quota bigint not null,
     primary key (node, usage_id)
   )`,
]
