import { sql } from 'kysely'
import {
  ALL_USERS,
  isInObjects,
  KEPT_SHARES,
  type KeptBound,
  type KeptEntry,
  type KeptFacts,
  type KeptFilter,
  type KeptKind,
  type KeptShareName,
  type KeptSum,
  rulesOf,
  sharesOf,
} from '../../domain/kept.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { filesFull } from '../files-full.ts'
import { type SealContext, seal, type Secrets } from '../secrets.ts'
import { wereRemovedSince } from './answer-removals.ts'
import { type Db, inChunks } from './operation.ts'
import { storeResponse } from './stored-responses.ts'

/** Bytes counted for a row (its ids, other columns and indexes) in addition to its content. */
const ROW_BYTES = 512
/** Maximum number of rows in one statement and of keys in a query, because databases limit the parameters. */
export const MAX_ROWS = 1_000
/** Maximum number of parts that one write removes. It is small, because charges of calls wait for the commit. */
const MAX_REMOVED_PARTS = 32

/** Milliseconds after its last part at which a content without an entry expires. */
const INCOMPLETE_MS = 3_600_000

/** An entry to be stored. */
export interface EntryToKeep extends KeptFacts {
  /** Bytes that count although they are in the facts; 0 by default. */
  readonly bytes?: number
  /** The response whose content the entry is, to be stored with it. */
  readonly record?: StoredResponse
  /**
   * Number of the last removal of answers before the call began. If a later removal concerns the entry, it is not
   * stored. Absent if removals do not matter.
   */
  readonly lastRemoval?: number
}

/** The content of an entry, of which all parts except the last one are stored before its row. */
interface ContentToKeep {
  readonly contentId: string
  readonly bytes: number
  readonly earlierParts: number
  /** Undefined if the entry has no content, or all of it is in an `ObjectPlace`. */
  readonly last: Uint8Array | undefined
}

/** Where a part of a content is. `part` counts from 0. */
export interface PartPlace {
  readonly kind: KeptKind
  readonly contentId: string
  readonly part: number
}

/** The context in which the facts of a row are encrypted, so that a row with another user or content is not accepted. */
export function keptContext({
  kind,
  key,
  userId,
  contentId,
  parts,
  bytes,
}: Pick<KeptEntry, 'key' | 'userId' | 'contentId' | 'parts' | 'bytes'> & {
  readonly kind: string
}): SealContext {
  return { table: 'kept', row: `${kind} ${key} ${userId} ${contentId} ${parts} ${bytes}` }
}

/** The context in which a part is encrypted: its place. */
export function keptPartContext({
  kind,
  contentId,
  part,
}: Omit<PartPlace, 'kind'> & { readonly kind: string }): SealContext {
  return { table: 'kept_parts', row: `${kind} ${contentId} ${part}` }
}

/**
 * Stores a part of a content, before the row of its entry. Until that is stored, the content has a row of the kind
 * `incomplete`. Resolves to false if the parts before this one were removed meanwhile.
 */
export async function storeKeptPart(
  db: Db,
  {
    userId,
    nowMs,
    bytes,
    node = '',
    ...place
  }: PartPlace &
    UserAndTime & {
      /** Absent if the part is to be written to an `ObjectPlace`. */
      readonly bytes?: Uint8Array | undefined
      /** Name of the node that writes the content; absent if there is one alone. */
      readonly node?: string | undefined
    },
  secrets: Secrets,
): Promise<boolean> {
  const { contentId, part } = place
  const values = { model: node, parts: part + 1, expires_ms: nowMs + INCOMPLETE_MS }
  if (part === 0)
    await db
      .insertInto('kept')
      .values(incompleteRow(contentId, userId, values))
      .execute()
  else {
    const row = db.updateTable('kept').set(values).where('kind', '=', incompleteKindOf(contentId))
    const { numUpdatedRows } = await row
      .where('key', '=', contentId)
      .where('parts', '=', part)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return false
  }
  if (bytes) await insertPart(db, place, bytes, secrets)
  return true
}

function incompleteKindOf(contentId: string): KeptKind {
  return isInObjects({ contentId }) ? 'incomplete_objects' : 'incomplete'
}

/**
 * Ends incomplete contents in an `ObjectPlace`, whose objects are removed from now on: one of them, or all that a node has
 * left; without both, all.
 */
export async function lapseIncomplete(
  db: Db,
  { contentId, node }: { readonly contentId?: string | undefined; readonly node?: string | undefined },
): Promise<void> {
  let rows = db.updateTable('kept').set({ expires_ms: 0 }).where('kind', '=', 'incomplete_objects')
  if (contentId !== undefined) rows = rows.where('key', '=', contentId)
  if (node !== undefined) rows = rows.where('model', '=', node)
  await rows.execute()
}

export interface UserAndTime {
  readonly userId: number
  readonly nowMs: number
}

function incompleteRow(
  contentId: string,
  userId: number,
  values: { readonly parts: number; readonly expires_ms: number; readonly model?: string },
) {
  const owner = { user_id: userId, share: '', owner_id: userId, token_id: 0, model: '' }
  const content = { content_id: contentId, cipher: null, bytes: 0, created_ms: 0 }
  return { kind: incompleteKindOf(contentId), key: contentId, ...owner, ...content, ...values }
}

async function insertPart(db: Db, place: PartPlace, bytes: Uint8Array, secrets: Secrets): Promise<void> {
  const { kind, contentId, part } = place
  const cipher = seal(secrets, bytes, keptPartContext(place))
  await db.insertInto('kept_parts').values({ content_id: contentId, part, kind, cipher }).execute()
}

/**
 * Stores the row of an entry, and the last part of its content. An earlier entry with the same key is replaced together
 * with its parts. Nothing is stored if the user was deleted, if answers like it were removed after `lastRemoval`, or if
 * its earlier parts were removed meanwhile. Resolves to the sizes of its shares; undefined if it was not stored. Throws
 * `files_full` if its share would have more than `maxShareBytes`.
 */
export async function storeKept(
  db: Db,
  {
    content,
    maxShareBytes = Number.POSITIVE_INFINITY,
    ...entry
  }: EntryToKeep & { readonly content: ContentToKeep; readonly maxShareBytes?: number },
  secrets: Secrets,
): Promise<KeptSum[] | undefined> {
  const { kind, key, userId, lastRemoval, record } = entry
  const { contentId, earlierParts, last } = content
  if (await isDeleted(db, userId)) return undefined
  if (lastRemoval !== undefined && (await wereRemovedSince(db, lastRemoval, entry))) return undefined
  if (earlierParts > 0 && !(await takeIncomplete(db, contentId, earlierParts))) return undefined
  const earlier = await rowsOf(db).where('kind', '=', kind).where('key', '=', key).execute()
  await removeRowsAndParts(db, earlier)
  if (last) await insertPart(db, { kind, contentId, part: earlierParts }, last, secrets)
  const row = rowOf(entry, content, secrets)
  await db.insertInto('kept').values(row).execute()
  if (record) await storeResponse(db, record)
  const sums = await updateSums(db, { written: [row], removed: earlier })
  for (const { bytes } of sums)
    if (bytes > maxShareBytes) throw filesFull(bytes - countedBytes(row), maxShareBytes)
  return sums
}

/**
 * Stores entries that consist of facts, with few statements. Resolves to the sizes of their shares; undefined, with nothing
 * stored, if `bound` is reached. That is counted in the same transaction, so that concurrent writes cannot exceed it.
 */
export async function storeKeptFacts(
  db: Db,
  { entries, bound }: { readonly entries: readonly EntryToKeep[]; readonly bound?: KeptBound | undefined },
  secrets: Secrets,
): Promise<KeptSum[] | undefined> {
  if (bound && (await isReached(db, bound))) return undefined
  // The last of several entries with one key counts, because one statement cannot write a row twice.
  const latest = new Map(entries.map((entry) => [`${entry.kind} ${entry.key}`, entry]))
  const rows = [...latest.values()].map((entry) =>
    rowOf(entry, { contentId: '', bytes: 0, earlierParts: 0, last: undefined }, secrets),
  )
  const removed: KeptRow[] = []
  for (const [kind, ofKind] of Map.groupBy(rows, (row) => row.kind)) {
    const keys = ofKind.map(({ key }) => key)
    const select = (some: readonly string[]) =>
      rowsOf(db).where('kind', '=', kind).where('key', 'in', some).execute()
    removed.push(...(await inChunks(keys, select, MAX_ROWS)))
  }
  await removeRowsAndParts(db, removed)
  const insert = (some: readonly (typeof rows)[number][]) => db.insertInto('kept').values(some).execute()
  await inChunks(rows, insert, MAX_ROWS)
  return updateSums(db, { written: rows, removed })
}

async function isReached(db: Db, { kind, userId, most }: KeptBound): Promise<boolean> {
  // This update changes nothing. It locks the user's row, so that no other transaction counts the entries meanwhile.
  await db
    .updateTable('users')
    .set((eb) => ({ status: eb.ref('status') }))
    .where('id', '=', userId)
    .execute()
  const { count } = await db
    .selectFrom('kept')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('kind', '=', kind)
    .where('share', '=', rulesOf(kind).share ?? '')
    .where('owner_id', '=', ownerOf(kind, userId))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  return count >= most
}

/** Removes the row of a content of which this many parts are stored. Resolves to whether there is one. */
async function takeIncomplete(db: Db, contentId: string, parts: number): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('kept')
    .where('kind', '=', incompleteKindOf(contentId))
    .where('key', '=', contentId)
    .where('parts', '=', parts)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

function rowOf(
  { kind, key, userId, facts, bytes: factsBytes = 0, ...entry }: EntryToKeep,
  { contentId, bytes: contentBytes, earlierParts, last }: ContentToKeep,
  secrets: Secrets,
) {
  const parts = earlierParts + (last ? 1 : 0)
  const bytes = contentBytes + factsBytes
  const context = keptContext({ kind, key, userId, contentId, parts, bytes })
  return {
    kind,
    key,
    content_id: contentId,
    user_id: userId,
    token_id: entry.tokenId,
    model: entry.model,
    share: rulesOf(kind).share ?? '',
    owner_id: ownerOf(kind, userId),
    cipher: seal(secrets, facts, context),
    parts,
    bytes,
    created_ms: entry.createdMs,
    expires_ms: entry.expiresMs,
  }
}

/** The owner of a row in its share: its user, or all users. */
export function ownerOf(kind: KeptKind, userId: number): number {
  const { share } = rulesOf(kind)
  return share !== null && KEPT_SHARES[share].isCommon ? ALL_USERS : userId
}

async function isDeleted(db: Db, userId: number): Promise<boolean> {
  const query = db.selectFrom('users').select('id').where('id', '=', userId)
  return (await query.where('deleted_time', 'is not', null).executeTakeFirst()) !== undefined
}

/** What a write has removed. */
interface RemovedKept {
  readonly removed: number
  /** Whether a content had too many parts for one write. What is left of it is removed by `pruneKept`. */
  readonly rest: boolean
}

/** Removes at most `limit` entries that match a filter, with a limited number of parts. */
export async function removeKept(
  db: Db,
  { kind, key, keys, except = [], userId, tokenId, model, limit }: KeptFilter & { readonly limit: number },
): Promise<RemovedKept> {
  let chosen = rowsOf(db).where('kind', '=', kind)
  if (key !== undefined) chosen = chosen.where('key', '=', key)
  if (keys !== undefined) chosen = chosen.where('key', '>=', keys.from).where('key', '<=', keys.to)
  if (except.length > 0) chosen = chosen.where('key', 'not in', except)
  // With share and owner, the entries of a user are found by an index.
  if (userId !== undefined)
    chosen = chosen
      .where('share', 'in', sharesOf(kind))
      .where('owner_id', '=', ownerOf(kind, userId))
      .where('user_id', '=', userId)
  if (tokenId !== undefined) chosen = chosen.where('token_id', '=', tokenId)
  if (model !== undefined) chosen = chosen.where('model', '=', model)
  const { rows, rest } = await removeRows(db, await chosen.limit(limit).execute())
  return { removed: rows.length, rest }
}

/** Removes at most `limit` expired entries of all kinds, with a limited number of parts. Resolves to their number. */
export async function pruneKept(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const all = rowsOf(db).where('expires_ms', '<=', nowMs)
  const expired = all.where('kind', '<>', 'incomplete_objects').orderBy('expires_ms')
  const { rows } = await removeRows(db, await expired.limit(limit).execute())
  return rows.length
}

/**
 * Removes the oldest entries of a share, at most `limit`, until at most `maxBytes` are left. Of a common share, those of a user
 * who has more than half of it are removed first. `more`: whether the share is still larger than the maximum.
 */
export async function removeOldestKept(
  db: Db,
  {
    share,
    userId,
    maxBytes,
    limit,
  }: Pick<KeptSum, 'share' | 'userId'> & { readonly maxBytes: number; readonly limit: number },
): Promise<RemovedKept & { readonly more: boolean }> {
  const sums = db.selectFrom('kept_sums').select('bytes').where('share', '=', share)
  const sum = await sums.where('user_id', '=', userId).executeTakeFirst()
  let excess = (sum?.bytes ?? 0) - maxBytes
  if (excess <= 0) return { removed: 0, rest: false, more: false }
  const holder = KEPT_SHARES[share].isCommon ? await holderOfMost(db, share, maxBytes / 2) : undefined
  const held = rowsOf(db).where('share', '=', share).where('owner_id', '=', userId)
  const oldest = await (holder === undefined ? held : held.where('user_id', '=', holder))
    .orderBy('created_ms')
    .limit(limit)
    .execute()
  const needed = oldest.filter(({ bytes }) => {
    const isNeeded = excess > 0
    excess -= countedBytes({ bytes })
    return isNeeded
  })
  const { rows, rest } = await removeRows(db, needed)
  const removedBytes = rows.reduce((total, row) => total + countedBytes(row), 0)
  const more = (sum?.bytes ?? 0) - removedBytes > maxBytes && rows.length > 0
  return { removed: rows.length, rest, more }
}

/** The user with the most bytes in a common share; undefined if no user has more than `bytes`. */
async function holderOfMost(db: Db, share: KeptShareName, bytes: number): Promise<number | undefined> {
  const sums = db.selectFrom('kept_sums').select('user_id').where('share', '=', share)
  const ofUsers = sums.where('user_id', '<>', ALL_USERS).where('bytes', '>', bytes)
  return (await ofUsers.orderBy('bytes', 'desc').limit(1).executeTakeFirst())?.user_id
}

/**
 * Lists deleted users with stored data. `deleteUser` keeps the rows with the sizes of the user's data, which are removed
 * after the data.
 */
export async function deletedUsersWithKeptData(db: Db): Promise<number[]> {
  const rows = await db
    .selectFrom('users')
    .innerJoin('kept_sums', 'kept_sums.user_id', 'users.id')
    .select('users.id')
    .distinct()
    .where('users.deleted_time', 'is not', null)
    .execute()
  return rows.map(({ id }) => id)
}

/** Removes the sizes of the data of a deleted user, when the data is removed. */
export async function removeKeptSums(db: Db, { userId }: { readonly userId: number }): Promise<void> {
  await db.deleteFrom('kept_sums').where('user_id', '=', userId).execute()
}

type KeptRow = Awaited<ReturnType<ReturnType<typeof rowsOf>['execute']>>[number]

function rowsOf(db: Db) {
  return db
    .selectFrom('kept')
    .select(['kind', 'key', 'content_id', 'user_id', 'share', 'owner_id', 'parts', 'bytes'])
}

/** Removes the first of these rows, as many as have at most `MAX_REMOVED_PARTS` parts in total, but at least one. */
async function removeRows(
  db: Db,
  chosen: readonly KeptRow[],
): Promise<{ readonly rows: readonly KeptRow[]; readonly rest: boolean }> {
  let parts = 0
  const rows = chosen.filter((row, index) => (parts += row.parts) <= MAX_REMOVED_PARTS || index === 0)
  for (const [kind, keys] of keysByKind(rows)) {
    const { recordTable } = rulesOf(kind)
    if (recordTable) await db.deleteFrom(recordTable).where('id', 'in', keys).execute()
  }
  const rest = await removeRowsAndParts(db, rows)
  await updateSums(db, { removed: rows })
  return { rows, rest }
}

function keysByKind(rows: readonly KeptRow[]): [KeptKind, string[]][] {
  const byKind = Map.groupBy(rows, (row) => row.kind as KeptKind)
  return [...byKind].map(([kind, ofKind]) => [kind, ofKind.map(({ key }) => key)])
}

/**
 * Removes rows with their parts. A content in an `ObjectPlace` becomes incomplete and expired, until its objects are removed
 * (`KeptStore.removeObjects`). Of a content with more than `MAX_REMOVED_PARTS`, the last parts are removed, and the others
 * become incomplete and expired. Resolves to whether there are such.
 */
async function removeRowsAndParts(db: Db, rows: readonly KeptRow[]): Promise<boolean> {
  for (const [kind, keys] of keysByKind(rows))
    await db.deleteFrom('kept').where('kind', '=', kind).where('key', 'in', keys).execute()
  const entries = rows.filter(({ kind, parts }) => kind !== 'incomplete_objects' && parts > 0)
  const isApart = ({ content_id: contentId }: KeptRow): boolean => isInObjects({ contentId })
  const apart = entries.filter(isApart)
  if (apart.length > 0)
    await db
      .insertInto('kept')
      .values(
        apart.map(({ content_id: id, user_id: userId, parts }) =>
          incompleteRow(id, userId, { parts, expires_ms: 0 }),
        ),
      )
      .execute()
  const inDatabase = entries.filter((row) => !isApart(row))
  const isLarge = (row: KeptRow): boolean => row.parts > MAX_REMOVED_PARTS
  const large = inDatabase.filter(isLarge)
  for (const { content_id: contentId, user_id: userId, parts } of large) {
    const left = parts - MAX_REMOVED_PARTS
    const all = db.deleteFrom('kept_parts').where('content_id', '=', contentId)
    await all.where('part', '>=', left).execute()
    await db
      .insertInto('kept')
      .values(incompleteRow(contentId, userId, { parts: left, expires_ms: 0 }))
      .execute()
  }
  const ids = inDatabase.filter((row) => !isLarge(row)).map((row) => row.content_id)
  if (ids.length > 0) await db.deleteFrom('kept_parts').where('content_id', 'in', ids).execute()
  return large.length > 0
}

/** A row as it counts in its shares. */
type CountedRow = Pick<KeptRow, 'share' | 'owner_id' | 'user_id' | 'bytes'>

function countedBytes({ bytes }: Pick<KeptRow, 'bytes'>): number {
  return bytes + ROW_BYTES
}

/**
 * Updates the sizes of shares, in the transaction that writes or removes the rows. A row in a common share counts for all users
 * together, and for its user. Resolves to the new sizes.
 */
async function updateSums(
  db: Db,
  {
    written = [],
    removed = [],
  }: { readonly written?: readonly CountedRow[]; readonly removed?: readonly CountedRow[] },
): Promise<KeptSum[]> {
  const changes = new Map<string, Omit<KeptSum, 'bytes'> & { bytes: number }>()
  const add = (share: string, userId: number, bytes: number): void => {
    const name = `${share} ${userId}`
    const change = changes.get(name) ?? { share: share as KeptShareName, userId, bytes: 0 }
    changes.set(name, { ...change, bytes: change.bytes + bytes })
  }
  for (const [rows, sign] of [
    [written, 1],
    [removed, -1],
  ] as const)
    for (const row of rows.filter(({ share }) => share !== ''))
      for (const userId of new Set([row.owner_id, row.user_id]))
        add(row.share, userId, sign * countedBytes(row))
  const sums: KeptSum[] = []
  // Rows are locked in the order of their names, so that transactions cannot deadlock.
  for (const [, { share, userId, bytes: change }] of [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { bytes } = await db
      .insertInto('kept_sums')
      .values({ share, user_id: userId, bytes: change })
      .onConflict((on) =>
        on.columns(['share', 'user_id']).doUpdateSet({ bytes: sql`kept_sums.bytes + excluded.bytes` }),
      )
      .returning('bytes')
      .executeTakeFirstOrThrow()
    sums.push({ share, userId, bytes })
  }
  return sums
}
