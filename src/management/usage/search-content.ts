import { z } from 'zod'
import type { Excerpt } from '../../content/excerpts.ts'
import type { ContentSummary } from '../../content/messages.ts'
import type { UsageEntry } from '../../domain/records/usage.ts'
import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import { idsFilter, textsFilter, unixSeconds } from '../input-fields.ts'
import { type ContentServices, mayRead, cannotRead } from './call-content.ts'
import { contentsInTime } from './content-age.ts'
import { periodOfQuery } from './list-usage.ts'
import { callsById } from './usage-sessions.ts'

/** Maximum number of calls that one search looks at. */
const MAX_CALLS = 1_000
/** A search ends with this many hits; each of another user's calls is an entry of the audit log. */
const MAX_HITS = 50
/** Milliseconds after which a search, or a read of first words, answers what it has found. Content in a bucket is read over the network. */
const MAX_MS = 10_000
/** Maximum milliseconds that one content may wait for memory, and that its read may take, so that it does not hide the others. */
const MEMORY_MS = 1_000
const READ_MS = 4_000
const MAX_WORDS = 200
/** Maximum number of calls whose first words are read at once, as many as a page has sessions. */
const MAX_FIRST_WORDS = 50

const CURSOR = /^(\d{1,15})-([\da-f-]{36})$/

/** Query parameters of a search in the content log; `docs/api.md: Content log`. */
export const contentSearchQuery = z.object({
  q: z
    .string({ error: 'expected the words to search for' })
    .trim()
    .min(2, { error: 'expected at least 2 characters' })
    .max(MAX_WORDS, { error: `expected at most ${MAX_WORDS} characters` }),
  start_timestamp: unixSeconds(),
  end_timestamp: unixSeconds(),
  user_id: idsFilter(),
  username: textsFilter(),
  after: z
    .string()
    .regex(CURSOR, { error: 'expected `next` of another search' })
    .optional()
    .meta({ description: '`next` of the search to continue' }),
})

const excerptFields = {
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  text: z.string(),
  at: z.int().meta({ description: 'Where in the text the words begin, in UTF-16 units' }),
  length: z.int(),
}

/** Calls in which the searched words were said, the newest first. */
export const contentSearchSchema = z.object({
  items: z.array(
    z.object({
      id: z.string(),
      created_at: z.int(),
      user_id: z.int(),
      username: z.string(),
      token_id: z.int(),
      token_name: z.string(),
      model_name: z.string(),
      session: z.string(),
      quota: z.int(),
      ...excerptFields,
    }),
  ),
  calls: z.int().meta({ description: 'Calls of the period that were looked at, with content or without' }),
  searched: z.int().meta({ description: 'Those of which texts are kept that the account may read' }),
  unread: z.int().meta({ description: 'Those of `searched` that could not be read now' }),
  next: z.string().nullable().meta({ description: 'Where to continue; null at the end of the period' }),
})

/**
 * Searches the texts of kept calls for words: the account's own calls, and those of others where the account
 * may read them. Each hit of another user's call is recorded in the audit log before it is returned.
 */
export async function searchContent(
  services: ContentServices,
  query: z.output<typeof contentSearchQuery>,
  user: User,
): Promise<z.output<typeof contentSearchSchema>> {
  const { store } = services
  const { user_id, username } = query
  const whose = mayReadOthers(services, user) ? { user_id, username } : { user_id: user.id }
  const { entries, next } = await store.read('scanUsage', {
    filter: { ...periodOfQuery(query), ...whose },
    after: cursorFromText(query.after),
    maxRows: MAX_CALLS,
  })
  const readable = await readableOf(services, entries, user)
  const endMs = performance.now() + MAX_MS
  const items: z.output<typeof contentSearchSchema>['items'] = []
  let searched = 0
  let unread = 0
  let calls = entries.length
  let last: UsageCursor | null = next
  for (const [place, entry] of entries.entries()) {
    const summary = readable.get(entry.id)
    if (!summary) continue
    const excerpt = await excerptOf(services, summary, entry.kind, query.q)
    searched += 1
    if (excerpt === 'unread') unread += 1
    else if (excerpt) items.push({ ...callOf(entry), ...excerpt })
    if (items.length < MAX_HITS && performance.now() < endMs) continue
    calls = place + 1
    const isLast = next === null && place === entries.length - 1
    last = isLast ? null : { id: entry.id, ended_ms: entry.ended_ms }
    break
  }
  await recordReads(services, items, user)
  return { items, calls, searched, unread, next: last && cursorText(last) }
}

/** Query parameters: the calls, and whether to read those of other users too. */
export const firstWordsQuery = z.object({
  id: textsFilter(),
  others: z.enum(['0', '1'], { error: 'expected 0 or 1' }).optional(),
})

/** The first words of those of the given calls of which texts are kept. */
export const firstWordsSchema = z.object({
  items: z.array(
    z.object({
      id: z.string(),
      text: z
        .string()
        .nullable()
        .meta({ description: 'Null if the call is that of another user, and `others` is not 1' }),
    }),
  ),
  unread: z.int().meta({ description: 'Calls that could not be read now, and that `items` lacks' }),
  may_read_others: z.boolean(),
})

/**
 * What users said first in calls. Those of other users are read, and recorded in the audit log, only if
 * `others` asks for them.
 */
export async function firstWordsOfCalls(
  services: ContentServices,
  { id: ids = [], others }: z.output<typeof firstWordsQuery>,
  user: User,
): Promise<z.output<typeof firstWordsSchema>> {
  if (ids.length > MAX_FIRST_WORDS)
    throw new GatewayError('invalid_request', `id: expected at most ${MAX_FIRST_WORDS} ids`)
  const { store } = services
  const may_read_others = mayReadOthers(services, user)
  const entries = [...(await callsById(store, ids)).values()]
  const readable = await readableOf(services, entries, user)
  const endMs = performance.now() + MAX_MS
  const items: z.output<typeof firstWordsSchema>['items'] = []
  let unread = 0
  const read: UsageEntry[] = []
  for (const entry of entries) {
    const summary = readable.get(entry.id)
    if (!summary) continue
    if (summary.userId !== user.id && others !== '1') {
      items.push({ id: entry.id, text: null })
      continue
    }
    const excerpt = performance.now() < endMs ? await excerptOf(services, summary, entry.kind) : 'unread'
    if (excerpt === 'unread') unread += 1
    else if (excerpt) {
      items.push({ id: entry.id, text: excerpt.text })
      read.push(entry)
    }
  }
  await recordReads(services, read, user)
  return { items, unread, may_read_others }
}

/** The texts among these calls that are kept, in time, and that the user may read, by call. */
async function readableOf(
  services: ContentServices,
  entries: readonly UsageEntry[],
  user: User,
): Promise<ReadonlyMap<string, ContentSummary>> {
  const found = await services.content.find(entries.map(({ id }) => id)).catch(cannotRead)
  const summaries = [...found.values()].filter(
    (summary) => summary.what !== 'metadata' && mayRead(services, user, summary),
  )
  const groups = new Map(entries.map(({ id, group }) => [id, group]))
  const kept = await contentsInTime(services, summaries, (id) => groups.get(id))
  return new Map(kept.map((summary) => [summary.id, summary]))
}

/**
 * The place of the words in a content, or its first words. `unread` if there is no memory for it, or if it cannot be read
 * in time: one such content must not hide the others.
 */
async function excerptOf(
  { content, holdToRead }: ContentServices,
  summary: ContentSummary,
  kind: UsageEntry['kind'],
  words?: string,
): Promise<Excerpt | 'unread' | undefined> {
  try {
    const giveBack = await holdToRead(content.bytesToRead(summary), MEMORY_MS)
    return await content.excerpt(summary.id, kind, words, READ_MS).finally(giveBack)
  } catch {
    return 'unread'
  }
}

async function recordReads(
  { store }: ContentServices,
  calls: readonly Pick<UsageEntry, 'id' | 'user_id'>[],
  user: User,
): Promise<void> {
  const ofOthers = calls.filter(({ user_id }) => user_id !== user.id)
  await Promise.all(ofOthers.map(({ id }) => store.write('recordContentRead', { callId: id })))
}

function mayReadOthers({ settings }: ContentServices, { role }: User): boolean {
  const { readers } = settings().contentLog
  return readers !== undefined && role >= readers
}

function callOf({
  id,
  ended_ms,
  user_id,
  username,
  token_id,
  token_name,
  model,
  session,
  quota,
}: UsageEntry) {
  const created_at = Math.floor(ended_ms / 1000)
  return { id, created_at, user_id, username, token_id, token_name, model_name: model, session, quota }
}

function cursorText({ id, ended_ms }: UsageCursor): string {
  return `${ended_ms}-${id}`
}

function cursorFromText(text: string | undefined): UsageCursor | null {
  const [, ended = '', id = ''] = CURSOR.exec(text ?? '') ?? []
  return id === '' ? null : { id, ended_ms: Number(ended) }
}
