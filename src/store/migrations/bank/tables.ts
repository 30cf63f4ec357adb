/**
 * What the bank keeps: of each account how much is lent (`leased`) and how often its leases were called in
 * (`epoch`), who has borrowed what, and until when a node is believed to run. `docs/ledger.md: Many nodes`.
 */
export const TABLES = [
  `alter table users
     add column leased bigint not null default 0 constraint users_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
  `alter table tokens
     add column leased bigint not null default 0 constraint tokens_leased check (leased >= 0),
     add column epoch bigint not null default 0`,
  // Which bank this is: a node's local file remembers it, lest it report to another.
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
  // What a node that was lost has been charged by estimate; withdrawn if it comes back after all.
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
