import { sql } from 'kysely'
import type { ChangeOrigin } from '../../domain/audit.ts'
import { requireVersion, tokenVersion } from '../../domain/object-version.ts'
import {
  operatorLimitsAfterChange,
  operatorLimitsAfterEdit,
  findLoosenedLimit,
  findLoosenedGrant,
} from '../../domain/usage-limits.ts'
import {
  type KeyForm,
  type NewToken,
  TOKEN,
  type Token,
  TOKEN_STATUS,
  type TokenChanges,
  type TokenStatus,
} from '../../domain/records/token.ts'
import { importedKeyHash, tokenStatusAt } from '../../domain/api-key.ts'
import { GatewayError } from '../../errors.ts'
import { columnsOfDeletedToken, undeletedTokensOfUser, tokenFromRow } from '../account-rows.ts'
import { hashKey, keyEndHash, keyHashes, seal, type Secrets } from '../secrets.ts'
import {
  newUsageLimitColumns,
  columnsOfUsageLimits,
  usageLimitColumns,
  usageLimitsFromRow,
} from '../usage-limit-columns.ts'
import { type Db, inChunks } from './operation.ts'
import { decryptTokenKey, type TokenWithKey, findTokenWithKey, undeletedUser } from './find-accounts.ts'

/**
 * Creates a token. Its key is stored encrypted, together with an HMAC for the lookup. Rejects if another
 * token has the same key, even a deleted one.
 */
export async function createToken(db: Db, token: NewToken, secrets: Secrets): Promise<Token> {
  await refuseTakenKeys(db, [token], secrets)
  const ids = await createTokens(db, [token], secrets)
  const row = await db.selectFrom('tokens').selectAll().where('id', 'in', ids).executeTakeFirstOrThrow()
  return tokenFromRow(row)
}

/**
 * Throws if a token has the key of one of these already, even a deleted one. The number of statements does not depend on
 * their number.
 */
export async function refuseTakenKeys(db: Db, tokens: readonly NewToken[], secrets: Secrets): Promise<void> {
  const hashes = tokens.map(({ key, key_form }) =>
    key_form === 'digest' ? [importedKeyHash(key)] : keyHashes(secrets, key),
  )
  const rows = await inChunks(hashes.flat(), (some) =>
    db.selectFrom('tokens').select('key_hash').where('key_hash', 'in', some).execute(),
  )
  const taken = new Set(rows.map(({ key_hash }) => key_hash))
  for (const [index, { name }] of tokens.entries())
    if (hashes[index]?.some((hash) => taken.has(hash))) await refuseTakenKey(db, name, hashes[index])
}

/** Throws if a token has this key already, even a deleted one. */
export async function refuseTakenKey(db: Db, name: string, hashes: readonly string[]): Promise<void> {
  const holder = await db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .select(['tokens.id', 'tokens.deleted_time', 'users.username'])
    .where('key_hash', 'in', hashes)
    .executeTakeFirst()
  if (!holder) return
  const whose = `${holder.id} of the user "${holder.username}"`
  const which = holder.deleted_time === null ? `the token ${whose}` : `the deleted token ${whose}`
  throw new GatewayError(
    'invalid_request',
    `the key of the token "${name}" belongs to ${which} already: give it another key`,
  )
}

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * Creates tokens like `createToken`; the number of statements does not depend on their number. The keys must
 * be free. Returns the ids of the tokens in the given order.
 */
export async function createTokens(db: Db, tokens: readonly NewToken[], secrets: Secrets): Promise<number[]> {
  return inChunks(tokens, (some) => createSome(db, some, secrets), MAX_ROWS)
}

async function createSome(db: Db, tokens: readonly NewToken[], secrets: Secrets): Promise<number[]> {
  const hashes = tokens.map(({ key, key_form }) =>
    key_form === 'digest' ? importedKeyHash(key) : hashKey(secrets, key),
  )
  const rows = tokens.map((token, index) => ({
    ...TOKEN.newRow(token),
    key_digest: token.key_form === 'digest' ? token.key : '',
    key_hash: hashes[index] ?? '',
    key_end: token.key_form === 'digest' ? '' : keyEndHash(secrets, token.key),
    // The key is encrypted after the insert, because the encryption needs the id of the row.
    key_cipher: '',
    ...newUsageLimitColumns(token),
  }))
  const made = await db.insertInto('tokens').values(rows).returning(['id', 'key_hash']).execute()
  const idOf = new Map(made.map(({ id, key_hash }) => [key_hash, id]))
  const ids = hashes.map((hash) => idOf.get(hash) ?? 0)
  const sealed = tokens.flatMap(({ key, key_form }, index) => {
    if (key_form === 'digest') return []
    const id = ids[index] ?? 0
    const cipher = seal(secrets, key, { table: 'tokens', row: id })
    return [sql`(cast(${id} as bigint), cast(${cipher} as text))`]
  })
  if (sealed.length === 0) return ids
  await sql`
    with sealed (id, cipher) as (values ${sql.join(sealed)})
    update tokens set key_cipher = sealed.cipher from sealed where tokens.id = sealed.id
  `.execute(db)
  return ids
}

/**
 * Creates a token for an existing user who has fewer than `maxTokens` tokens. They are counted in the same
 * transaction, so that concurrent requests cannot exceed the limit.
 */
export async function createUserToken(
  db: Db,
  { token, maxTokens }: { readonly token: NewToken; readonly maxTokens: number },
  secrets: Secrets,
): Promise<Token> {
  const user = await undeletedUser(db, token.user_id)
  if (!user) throw new GatewayError('not_found', 'the user is gone')
  const { count } = await undeletedTokensOfUser(db, user.id)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count >= maxTokens) {
    throw new GatewayError(
      'invalid_request',
      `a user may have ${maxTokens} tokens at most (max_user_tokens), and this one has ${count}`,
    )
  }
  return createToken(db, token, secrets)
}

export interface TokenChange {
  /** Who makes the change, for the audit log. */
  readonly origin?: ChangeOrigin
  readonly tokenId: number
  readonly userId: number
  readonly fields: TokenChanges
  /**
   * Whether an operator makes the change. The holder of the token can then only tighten the limits that it
   * sets.
   */
  readonly isByOperator?: boolean
  /** If given, the change is refused with `changed_meanwhile` unless this is the token's version. */
  readonly version?: string | undefined
  /** Maximum quota of a token that is not unlimited, in quota units. */
  readonly maxQuota: number
  readonly nowMs: number
}

/** The token after the change, and `remain_quota` from before the change. */
interface ChangedToken extends TokenWithKey {
  readonly remainBefore: number
}

/**
 * Changes fields of a token, and the status that results from them; null if the user has no such token.
 * Rejects with `invalid_request` if the token is not unlimited and its quota is out of range, and with
 * `operator_limit` if the holder of the token loosens a limit set by an operator. Called only by
 * `Ledger.changeToken`, which updates the balance in memory.
 */
export async function changeToken(
  db: Db,
  { tokenId, userId, fields, isByOperator = false, version, maxQuota, nowMs }: TokenChange,
  secrets: Secrets,
): Promise<ChangedToken | null> {
  const before = await findTokenWithKey(db, { tokenId, userId }, secrets)
  if (!before) return null
  requireVersion(version, tokenVersion(before.token))
  const { budget, rateLimit, ...plain } = fields
  const { operator_terms } = before.token
  const given = isByOperator
    ? operatorLimitsAfterChange(operator_terms, { budget, rateLimit }, before.token.rateLimit.windowMs)
    : operator_terms
  const limits = usageLimitColumns({ budget, rateLimit })
  const fresh = {
    ...before.token,
    ...plain,
    ...usageLimitsFromRow({ ...columnsOfUsageLimits(before.token), ...limits }),
  }
  const grants = isByOperator ? operatorLimitsAfterEdit(given.grants, fresh, plain) : given.grants
  const { grants: _, ...others } = given
  const changed: Token = { ...fresh, operator_terms: { ...others, ...(grants && { grants }) } }
  if (!isByOperator) requireTightened(changed)
  requireQuotaOf(changed, fields.remain_quota !== undefined, maxQuota)
  const token = { ...changed, status: tokenStatusAt(changed, changed.remain_quota, nowMs) }
  await db
    .updateTable('tokens')
    .set({ ...TOKEN.toRow(token), ...limits })
    .where('id', '=', tokenId)
    .execute()
  return { token, key: before.key, remainBefore: before.token.remain_quota }
}

function requireTightened(token: Token): void {
  const { operator_terms } = token
  const looser =
    findLoosenedLimit(token, operator_terms) ?? findLoosenedGrant(token, operator_terms.grants ?? {})
  if (!looser) return
  throw new GatewayError(
    'operator_limit',
    `${looser.field}: an operator set this to ${looser.max}, and the holder of the key can only tighten it`,
  )
}

// A negative balance may result from calls, but a change must not set one.
function requireQuotaOf({ unlimited_quota, remain_quota }: Token, isGiven: boolean, maxQuota: number): void {
  if (unlimited_quota || (remain_quota <= maxQuota && (remain_quota >= 0 || !isGiven))) return
  throw new GatewayError(
    'invalid_request',
    `remain_quota: expected whole quota units from 0 to ${maxQuota}, not ${remain_quota}`,
  )
}

/** Replaces the key of a token; null if the user has no such token. Everything else about the token stays. */
export async function rotateToken(
  db: Db,
  change: {
    readonly tokenId: number
    readonly userId: number
    /** The new key as plain text, without `sk-`. */
    readonly key: string
  },
  secrets: Secrets,
): Promise<Token | null> {
  const row = await db
    .updateTable('tokens')
    .set({
      key_hash: hashKey(secrets, change.key),
      key_cipher: seal(secrets, change.key, { table: 'tokens', row: change.tokenId }),
      key_end: keyEndHash(secrets, change.key),
      key_form: 'plain',
    })
    .where('id', '=', change.tokenId)
    .where('user_id', '=', change.userId)
    .where('deleted_time', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row ? tokenFromRow(row) : null
}

/**
 * Stores a key of which only the digest was known. Resolves to whether a token has this digest.
 */
export async function storeImportedKey(
  db: Db,
  {
    digest,
    key,
    form,
  }: {
    /** SHA-256 of the key with `sk-`, in hexadecimal. */
    readonly digest: string
    /** The key as plain text, without `sk-`. */
    readonly key: string
    readonly form: KeyForm
  },
  secrets: Secrets,
): Promise<boolean> {
  const token = await db
    .updateTable('tokens')
    .set({ key_hash: hashKey(secrets, key), key_end: keyEndHash(secrets, key), key_form: form })
    .where('key_hash', '=', importedKeyHash(digest))
    .returning('id')
    .executeTakeFirst()
  if (!token) return false
  const key_cipher = seal(secrets, key, { table: 'tokens', row: token.id })
  await db.updateTable('tokens').set({ key_cipher }).where('id', '=', token.id).execute()
  return true
}

/** Number of keys whose ends one write computes, which takes a few milliseconds. */
const TAGGED_KEYS = 500

/**
 * Computes `key_end` of keys that an earlier version stored, some at a time. Resolves to whether there may be more. Keys
 * of which only a digest is known have no end.
 */
export async function tagKeyEnds(db: Db, _: object, secrets: Secrets): Promise<boolean> {
  const rows = await db
    .selectFrom('tokens')
    .select(['id', 'key_cipher'])
    .where('key_end', '=', '')
    .where('key_form', '<>', 'digest')
    .limit(TAGGED_KEYS)
    .execute()
  if (rows.length === 0) return false
  const tagged = rows.map(({ id, key_cipher }) => {
    const end = endOfSealed(key_cipher, id, secrets)
    return sql`(cast(${id} as bigint), cast(${end} as text))`
  })
  await sql`
    with tagged (id, key_end) as (values ${sql.join(tagged)})
    update tokens set key_end = tagged.key_end from tagged where tokens.id = tagged.id
  `.execute(db)
  return rows.length === TAGGED_KEYS
}

// A damaged row is marked, so that it does not keep the others from being found.
function endOfSealed(cipher: string, id: number, secrets: Secrets): string {
  try {
    return keyEndHash(secrets, decryptTokenKey(cipher, id, secrets))
  } catch {
    return 'unreadable'
  }
}

/** Sets the status of a token if its current status is `onlyFrom`. Resolves to whether it was set. */
export async function setTokenStatus(
  db: Db,
  change: { readonly tokenId: number; readonly status: TokenStatus; readonly onlyFrom: TokenStatus },
): Promise<boolean> {
  const result = await db
    .updateTable('tokens')
    .set({ status: change.status })
    .where('id', '=', change.tokenId)
    .where('status', '=', change.onlyFrom)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/**
 * Enables or disables a token; null if the user has no such token. Rejects with `invalid_request` if an
 * expired or exhausted token is to be enabled.
 */
export async function enableOrDisableToken(
  db: Db,
  change: {
    readonly tokenId: number
    readonly userId: number
    readonly status: typeof TOKEN_STATUS.enabled | typeof TOKEN_STATUS.disabled
    readonly nowMs: number
  },
  secrets: Secrets,
): Promise<TokenWithKey | null> {
  const { tokenId, userId, status, nowMs } = change
  const found = await findTokenWithKey(db, { tokenId, userId }, secrets)
  if (!found) return null
  const { token, key } = found
  if (status === TOKEN_STATUS.enabled) refuseUnusable(tokenStatusAt(token, token.remain_quota, nowMs))
  await db.updateTable('tokens').set({ status }).where('id', '=', tokenId).execute()
  return { token: { ...token, status }, key }
}

function refuseUnusable(status: TokenStatus): void {
  switch (status) {
    case TOKEN_STATUS.expired:
      throw new GatewayError(
        'invalid_request',
        'status: the token has expired and cannot be enabled; set expired_time to a later time, or to -1 for never',
      )
    case TOKEN_STATUS.exhausted:
      throw new GatewayError(
        'invalid_request',
        'status: the token has no quota left and cannot be enabled; set remain_quota, or unlimited_quota to true',
      )
    case TOKEN_STATUS.enabled:
    case TOKEN_STATUS.disabled:
  }
}

/** Those of the ids that are tokens of the user which are not deleted, in ascending order and each once. */
export async function ownTokenIds(
  db: Db,
  { userId, tokenIds }: { readonly userId: number; readonly tokenIds: readonly number[] },
): Promise<number[]> {
  const rows = await inChunks([...new Set(tokenIds)], (some) =>
    undeletedTokensOfUser(db, userId).select('id').where('id', 'in', some).execute(),
  )
  return rows.map(({ id }) => id).sort((one, other) => one - other)
}

/**
 * Marks those tokens in `tokenIds` that belong to the user as deleted. Resolves to their ids. The rows stay without
 * their long texts, so that running calls can continue and be settled.
 */
export async function deleteTokens(
  db: Db,
  {
    userId,
    tokenIds,
    nowSeconds,
  }: { readonly userId: number; readonly tokenIds: readonly number[]; readonly nowSeconds: number },
): Promise<number[]> {
  const ids = await ownTokenIds(db, { userId, tokenIds })
  await inChunks(ids, (some) =>
    db.updateTable('tokens').set(columnsOfDeletedToken(nowSeconds)).where('id', 'in', some).execute(),
  )
  return ids
}
