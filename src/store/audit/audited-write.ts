import type { AuditedObject, ChangeOrigin } from '../../domain/audit.ts'
import { asObject, type Json } from '../../domain/json.ts'
import type { Db } from '../operations/operation.ts'
import * as writes from '../operations/writes.ts'
import { type Secrets, hashSession } from '../secrets.ts'
import { appendAuditEntries, type NewAuditEntry } from './append-audit-entries.ts'
import { entriesBetween, type ObjectReference, objectStates } from './object-states.ts'
import type { DeclaredRow } from '../row-types.ts'
import { undeletedTokens } from '../account-rows.ts'
import { ownTokenIds } from '../operations/tokens.ts'
import { findInvitation } from '../operations/invitations.ts'
import { userOfIdentity } from '../operations/sign-ins.ts'
import { readSeededAccounts } from '../operations/seed-accounts.ts'
import { declaredRows, declaredState, rowKey } from './declared-rows.ts'

type AnyWrite = (db: Db, input: unknown, secrets: Secrets) => Promise<unknown>

const WRITES = { ...writes } as Readonly<Record<string, AnyWrite>>

/** An entry of `AUDIT_RULES`, for an operation whose name is known only when it runs. */
type AnyAudited =
  | {
      readonly touches?: (
        input: unknown,
        db: Db,
        secrets: Secrets,
      ) => readonly ObjectReference[] | Promise<readonly ObjectReference[]>
      readonly makes?: (output: unknown, input: unknown) => readonly ObjectReference[]
    }
  | { readonly deletes: (input: unknown, db: Db) => Promise<readonly ObjectReference[]> }
  | {
      readonly entries: (
        input: unknown,
        db: Db,
        secrets: Secrets,
      ) => Promise<(output: unknown) => Iterable<NewAuditEntry> | Promise<Iterable<NewAuditEntry>>>
    }
  | null

/**
 * Runs a write operation, and records its changes in the audit log in the same transaction. A write whose
 * input has no `origin` was made by the gateway itself and is not recorded.
 */
export async function auditedWrite(db: Db, name: string, input: unknown, secrets: Secrets): Promise<unknown> {
  const run = (): Promise<unknown> => WRITES[name]!(db, input, secrets)
  const audited = AUDIT_RULES[name as keyof typeof writes] as AnyAudited
  const origin = (input as { readonly origin?: ChangeOrigin } | undefined)?.origin
  if (!audited || !origin) return run()
  if ('entries' in audited) {
    const entriesOf = await audited.entries(input, db, secrets)
    const output = await run()
    await appendAuditEntries(db, origin, await entriesOf(output))
    return output
  }
  if ('deletes' in audited) {
    // Before the operation, after which the objects cannot be read. If it throws, the transaction is rolled back.
    await recordDeletions(db, origin, await audited.deletes(input, db), secrets)
    return run()
  }
  const touched = (await audited.touches?.(input, db, secrets)) ?? []
  const before = await objectStates(db, touched, secrets)
  const output = await run()
  const references = output === null ? [] : [...touched, ...(audited.makes?.(output, input) ?? [])]
  const after = await objectStates(db, references, secrets)
  if (references.length > 0) await appendAuditEntries(db, origin, entriesBetween(before, after))
  return output
}

/** Maximum number of objects whose states are in memory at once: a key may have 80 KB. */
const DELETIONS_AT_ONCE = 50

async function recordDeletions(
  db: Db,
  origin: ChangeOrigin,
  references: readonly ObjectReference[],
  secrets: Secrets,
): Promise<void> {
  for (let start = 0; start < references.length; start += DELETIONS_AT_ONCE) {
    const states = await objectStates(db, references.slice(start, start + DELETIONS_AT_ONCE), secrets)
    await appendAuditEntries(db, origin, entriesBetween(states, new Map()))
  }
}

/** Rule for an operation that changes objects: their states before and after the operation are compared. */
interface ChangesObjects<Input, Output> {
  /**
   * Returns the objects that the operation may change or delete, and no others: they are read before it, so that the
   * audit log can show what changed.
   */
  readonly touches?: (
    input: Input,
    db: Db,
    secrets: Secrets,
  ) => readonly ObjectReference[] | Promise<readonly ObjectReference[]>
  /** Returns the objects that the operation has created. */
  readonly makes?: (output: Output, input: Input) => readonly ObjectReference[]
}

/** Rule for an operation that deletes objects, of which there may be many. */
interface DeletesObjects<Input> {
  /** Returns the objects that the operation deletes unless it throws. */
  readonly deletes: (input: Input, db: Db) => Promise<readonly ObjectReference[]>
}

/**
 * Rule for an operation on sessions. `entries` is called before the operation and reads the state that it
 * needs; it returns a function, which is called after the operation and yields the entries.
 */
interface ReportsEntries<Input, Output> {
  readonly entries: (
    input: Input,
    db: Db,
    secrets: Secrets,
  ) => Promise<(output: Output) => Iterable<NewAuditEntry> | Promise<Iterable<NewAuditEntry>>>
}

type Name = keyof typeof writes
type Input<Of extends Name> = Parameters<(typeof writes)[Of]>[1]
type Output<Of extends Name> = Awaited<ReturnType<(typeof writes)[Of]>>

const user = (id: number): ObjectReference => ({ kind: 'user', id })
const key = (id: number): ObjectReference => ({ kind: 'key', id })
const channel = (id: number): ObjectReference => ({ kind: 'channel', id })

const invitation = (id: number): AuditedObject => ({ kind: 'invite', id, name: String(id) })

/** How each write is recorded in the audit log; null if it does not change an object that people manage. */
export const AUDIT_RULES: {
  readonly [Of in Name]:
    | ChangesObjects<Input<Of>, Output<Of>>
    | DeletesObjects<Input<Of>>
    | ReportsEntries<Input<Of>, Output<Of>>
    | null
} = {
  acceptInvitation: {
    async entries({ token, nowSeconds }, db, secrets) {
      const open = await findInvitation(db, { token, nowSeconds }, secrets)
      return async (made) => {
        if (!made || !open) return []
        const actor = { id: made.id, name: made.username }
        const created = entriesBetween(new Map(), await objectStates(db, [user(made.id)], secrets))
        const accepted = { action: 'invite.accept', object: invitation(open.id), changes: [] }
        return [accepted, ...created].map((entry) => ({ ...entry, actor }))
      }
    },
  },
  addRefusals: null,
  addRefusedCalls: null,
  beginSession: {
    async entries({ userId, proof }, db) {
      const person = await personOf(db, userId)
      const changes = [{ field: 'method', before: null, after: proof.kind }]
      return (isBegun) => (isBegun && person ? [sessionEntry('session.begin', person, changes)] : [])
    },
  },
  changeChannel: { touches: ({ id }) => [channel(id)] },
  changeToken: { touches: ownKey },
  changeUser: { touches: ({ userId }) => [user(userId)] },
  claimAlerts: null,
  createChannels: { makes: (ids) => ids.map(channel) },
  createInvitation: {
    async entries({ terms: { group, quota, budget } }) {
      const terms = { group, quota, budget: budget?.amount ?? 0, budget_period: budget?.period ?? '' }
      const changes = Object.entries(terms).map(([field, after]) => ({ field, before: null, after }))
      return ({ id }) => [{ action: 'invite.create', object: invitation(id), changes }]
    },
  },
  createToken: { makes: ({ id }) => [key(id)] },
  createUser: { makes: ({ id }) => [user(id)] },
  createUserOfIdentity: {
    async touches({ identity }, db) {
      const present = await userOfIdentity(db, identity)
      return present ? [user(present.id)] : []
    },
    makes: ({ id }) => [user(id)],
  },
  createUserToken: { makes: ({ id }) => [key(id)] },
  deleteChannels: { deletes: async ({ ids }) => ids.map(channel) },
  deleteInvitation: {
    async entries({ id }) {
      return (isDeleted) =>
        isDeleted ? [{ action: 'invite.delete', object: invitation(id), changes: [] }] : []
    },
  },
  deleteResponse: null,
  deleteTokens: { deletes: async (input, db) => (await ownTokenIds(db, input)).map(key) },
  deleteUser: {
    deletes: async ({ userId }, db) => [user(userId), ...(await keysOf(db, [userId]))],
  },
  endConditions: null,
  endOwnSession: {
    async entries({ userId }, db) {
      const person = await personOf(db, userId)
      return (isEnded) => (isEnded && person ? [sessionEntry('session.end', person)] : [])
    },
  },
  endSession: {
    async entries({ cookieValue }, db, secrets) {
      const session = await db
        .selectFrom('sessions')
        .select('user_id')
        .where('id_hash', '=', hashSession(secrets, cookieValue))
        .executeTakeFirst()
      const person = session && (await personOf(db, session.user_id))
      return (ended) => (ended && person ? [sessionEntry('session.end', person)] : [])
    },
  },
  importAccount: {
    makes: (_, { user: made, tokens }) => [
      ...(made ? [user(made.id)] : []),
      ...tokens.map(({ id }) => key(id)),
    ],
  },
  drainChannel: {
    async entries({ id, name, on }, db) {
      const row = await db
        .selectFrom('stored_settings')
        .select('name')
        .where('section', '=', 'drains')
        .where('name', '=', String(id))
        .executeTakeFirst()
      const before = row !== undefined
      const object = { kind: 'channel', id, name } as const
      const changes = [{ field: 'drained', before, after: on }]
      return () => (before === on ? [] : [{ action: 'channel.update', object, changes }])
    },
  },
  approveFirstTools: null,
  approveTool: {
    async entries({ name, value }, db) {
      const row = await db
        .selectFrom('stored_settings')
        .select('value')
        .where('section', '=', 'mcp_tools')
        .where('name', '=', name)
        .executeTakeFirst()
      const digestIn = (given: Json): Json => asObject(given)['digest'] ?? null
      const before = row ? digestIn(JSON.parse(row.value) as Json) : null
      const object = { kind: 'mcp_tool', id: null, name } as const
      const changes = [{ field: 'digest', before, after: digestIn(value) }]
      return () => [{ action: 'mcp_tool.approve', object, changes }]
    },
  },
  claimCall: null,
  endClaim: null,
  pruneIdempotentCalls: null,
  lapseClaims: null,
  releaseClaim: null,
  renewClaims: null,
  pruneAnswerRemovals: null,
  lapseIncomplete: null,
  pruneKept: null,
  recordAnswerRemoval: null,
  removeKept: null,
  removeKeptSums: null,
  removeOldestKept: null,
  storeKept: null,
  storeKeptFacts: null,
  storeKeptPart: null,
  linkIdentity: { touches: ({ userId }) => [user(userId)] },
  consumeState: null,
  recordAlertResults: null,
  recordChannelTest: null,
  recordDeclaredRows: {
    async entries({ settings }, db, secrets) {
      const before = await db.selectFrom('declared_settings').selectAll().execute()
      const states = (rows: readonly DeclaredRow[]) =>
        new Map(rows.map((row) => [rowKey(row), declaredState(row)]))
      const after = states(declaredRows(settings, secrets))
      return () => entriesBetween(states(before), after)
    },
  },
  recordContentDeletion: null,
  recordContentRead: null,
  recordExceededBudget: null,
  recordNodeSecrets: null,
  recordOutcome: null,
  recordRefusedSignIn: null,
  recordReveal: null,
  recordSessionUse: null,
  recordBatchCancel: null,
  recordCacheRemoval: null,
  recordCallStop: null,
  recordStreamedPart: null,
  recordToolsets: null,
  pruneAuditLog: null,
  pruneBudgets: null,
  pruneLentBudgets: null,
  pruneResponses: null,
  pruneRefusedCalls: null,
  pruneHalfHourSums: null,
  reportConditions: null,
  reportModelRetirements: null,
  rotateToken: { touches: ownKey },
  seedUsers: {
    touches: ({ seeds }, db, secrets) => seededObjects(db, seeds, secrets),
    makes: ({ users, tokens }) => [...users.map(({ id }) => user(id)), ...tokens.map(({ id }) => key(id))],
  },
  setAccessToken: { touches: ({ userId }) => [user(userId)] },
  setStoredSettings: { touches: ({ changes }) => changes },
  // Not recorded: a call sets the status automatically if its token is expired or exhausted.
  setTokenStatus: null,
  assignAlerts: null,
  // Not recorded: a call stores the key that it has sent.
  storeImportedKey: null,
  tagKeyEnds: null,
  storeModelRetirements: null,
  storePriceSet: null,
  storeProvenance: null,
  storeResponse: null,
  subscribeAlerts: null,
  enableOrDisableToken: { touches: ownKey },
  unlinkIdentity: { touches: ({ userId }) => [user(userId)] },
}

function sessionEntry(
  action: string,
  person: { readonly id: number; readonly name: string },
  changes: NewAuditEntry['changes'] = [],
): NewAuditEntry {
  return { action, object: { kind: 'session', id: null, name: person.name }, changes, actor: person }
}

async function personOf(db: Db, id: number): Promise<{ id: number; name: string } | undefined> {
  const row = await db.selectFrom('users').select('username').where('id', '=', id).executeTakeFirst()
  return row && { id, name: row.username }
}

/** The key of a change, if it is one of the user's: an operation leaves the keys of others alone. */
async function ownKey(
  { userId, tokenId }: { readonly userId: number; readonly tokenId: number },
  db: Db,
): Promise<ObjectReference[]> {
  return (await ownTokenIds(db, { userId, tokenIds: [tokenId] })).map(key)
}

async function keysOf(db: Db, userIds: readonly number[]): Promise<ObjectReference[]> {
  const rows = await undeletedTokens(db).select('id').where('user_id', 'in', userIds).execute()
  return rows.map(({ id }) => key(id))
}

/**
 * Existing users and tokens that the declarations in gateway.yaml may refer to, found in the same way as in
 * `seedUsers`.
 */
async function seededObjects(
  db: Db,
  seeds: Input<'seedUsers'>['seeds'],
  secrets: Secrets,
): Promise<ObjectReference[]> {
  const { users, tokens } = await readSeededAccounts(db, seeds, secrets)
  return [...users.map(({ id }) => user(id)), ...tokens.map(({ id }) => key(id))]
}
