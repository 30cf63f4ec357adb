import { setTimeout as delay } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Database } from '../row-types.ts'

/** Database role for connections to the bank. It can only read, and call four functions of the bank. */
export const RELAY_ROLE = 'sluice_relay'

const MAX_ATTEMPTS = 4
const RETRY_JITTER_MS = 100

const FUNCTIONS = ['bank_borrow', 'bank_report', 'bank_compare', 'bank_return']
const TABLES = ['users', 'tokens', 'leases', 'nodes', 'usage_log']

/**
 * Ensures that the restricted role exists, has its rights, and can be used by the current user. Resolves to
 * false if the user may not create or use it; `docs/ledger.md: Many nodes` shows how to create the role by
 * hand.
 */
export async function ensureRelayRole(db: Kysely<Database>): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(createAndGrant)
    } catch {
      // All databases of a server share their roles, so another gateway may be creating the role at this
      // moment.
      if (attempt === MAX_ATTEMPTS) return false
      await delay(Math.random() * RETRY_JITTER_MS)
    }
  }
}

async function createAndGrant(db: Kysely<Database>): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(hashtext('sluice relay role'))`.execute(db)
  if (await hasAllGrants(db)) return true
  const made = await sql`select from pg_roles where rolname = ${RELAY_ROLE}`.execute(db)
  const statements = [
    ...(made.rows.length === 0 ? [`create role ${RELAY_ROLE} nologin`] : []),
    ...((await isMember(db)) ? [] : [`grant ${RELAY_ROLE} to current_user`]),
    `grant usage on schema ${await schemaOf(db)} to ${RELAY_ROLE}`,
    `grant select on ${TABLES.join(', ')} to ${RELAY_ROLE}`,
    `grant execute on function ${FUNCTIONS.join(', ')} to ${RELAY_ROLE}`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
  return true
}

async function isMember(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{
    may: boolean
  }>`select coalesce(bool_or(pg_has_role(oid, 'member')), false) as may from pg_roles where rolname = ${RELAY_ROLE}`.execute(
    db,
  )
  return rows[0]?.may ?? false
}

async function hasAllGrants(db: Kysely<Database>): Promise<boolean> {
  if (!(await isMember(db))) return false
  const functions = FUNCTIONS.map(
    (name) => sql`has_function_privilege(${RELAY_ROLE}::name, ${name}::regproc, 'execute')`,
  )
  const tables = TABLES.map((name) => sql`has_table_privilege(${RELAY_ROLE}::name, ${name}::text, 'select')`)
  const { rows } = await sql<{
    all: boolean
  }>`select ${sql.join([...functions, ...tables], sql` and `)} as all`.execute(db)
  return rows[0]?.all ?? false
}

async function schemaOf(db: Kysely<Database>): Promise<string> {
  const { rows } = await sql<{ name: string }>`select quote_ident(current_schema()) as name`.execute(db)
  return rows[0]?.name ?? 'public'
}
