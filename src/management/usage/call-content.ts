import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { digestOf } from '../../content/entries.ts'
import type { ContentSummary, ContentOfCall } from '../../content/messages.ts'
import { CONTENT_PARTS, type ContentPart, partsOfContent } from '../../content/parts.ts'
import type { User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import { requireManageableUser } from '../authority.ts'
import { unixSeconds, wholeNumber } from '../input-fields.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'
import { findUser, userNotFound } from '../users/list-users.ts'
import { contentsInTime } from './content-age.ts'

/** What reading kept content needs. */
export type ContentServices = Pick<
  AdministrationServices,
  'store' | 'settings' | 'content' | 'nowMs' | 'holdToRead'
>

const partSchema = z.object({
  text: z.string().optional().meta({ description: 'The bytes, if they are UTF-8' }),
  base64: z.string().optional().meta({ description: 'The bytes, if they are not' }),
  sha256: z.string(),
  bytes: z.int().optional(),
  roles: z.array(z.string()).optional(),
  tools: z.array(z.string()).optional(),
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  finish_reason: z.string().optional(),
})

const textSchema = z.object({ kind: z.literal('text'), text: z.string() })
const mediaSchema = z.object({
  kind: z.literal('media'),
  type: z.string().meta({ description: 'The media type, or the type of the part' }),
  url: z.string().optional().meta({ description: 'Absent if the request has the bytes' }),
})
const jsonSchema = z.object({
  kind: z.literal('opaque'),
  json: z.string().meta({ description: 'What only one dialect has, as it was written' }),
})

const turnSchema = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  parts: z
    .array(
      z.discriminatedUnion('kind', [
        textSchema,
        z.object({ kind: z.literal('thinking'), text: z.string() }),
        z.object({
          kind: z.literal('tool-call'),
          name: z.string(),
          input: z.string().meta({ description: 'JSON, or the text for a custom tool' }),
        }),
        z.object({
          kind: z.literal('tool-result'),
          parts: z.array(z.discriminatedUnion('kind', [textSchema, mediaSchema, jsonSchema])).readonly(),
        }),
        z.object({
          kind: z.literal('search'),
          query: z.string(),
          pages: z.array(z.object({ url: z.string(), title: z.string() })).readonly(),
        }),
        mediaSchema,
        jsonSchema,
      ]),
    )
    .readonly(),
})

/** The content of a call (request and answer); `docs/api.md: Content log`. */
export const callContentSchema = z.object({
  what: z.string(),
  parts: z.partialRecord(z.enum(CONTENT_PARTS), partSchema),
  conversation: z.array(turnSchema).readonly().optional().meta({
    description: 'What client and model said; absent if the request is no conversation or cannot be read',
  }),
})

type Part = z.output<typeof partSchema>

/**
 * Reads the content of a call. Throws `not_found` if the user may not read it. If the call belongs to another
 * user, this is recorded in the audit log before the content is read.
 */
export async function callContent(
  services: ContentServices,
  id: string,
  user: User,
): Promise<z.output<typeof callContentSchema>> {
  const { content, store } = services
  const summary = (await content.find([id]).catch(cannotRead)).get(id)
  if (!summary || !mayRead(services, user, summary)) throw contentNotFound()
  const row = await store.read('callDetail', { id })
  const [kept] = await contentsInTime(services, [summary], () => row?.entry.group)
  if (!kept) throw contentNotFound()
  if (summary.userId !== user.id) await store.write('recordContentRead', { callId: id })
  await services.holdToRead(content.bytesToRead(summary))
  const found = await content.read(id, row?.entry.kind).catch(cannotRead)
  if (!found) throw contentNotFound()
  const { what, conversation } = found
  if (what === 'metadata') return { what, parts: factsOf(found) }
  return { what, parts: partsOf(found), ...(conversation && { conversation }) }
}

export function cannotRead(error: unknown): never {
  throw new GatewayError('storage_unavailable', 'the content log cannot be read now', { cause: error })
}

/** Whether a user may read this content: the own, or that of others from the role in `readers` on. */
export function mayRead({ settings }: ContentServices, user: User, { userId }: ContentSummary): boolean {
  const { readers } = settings().contentLog
  return userId === user.id || (readers !== undefined && user.role >= readers)
}

function contentNotFound(): GatewayError {
  return new GatewayError('not_found', 'no content is kept of a call with this id')
}

function factsOf({ content }: ContentOfCall): Partial<Record<ContentPart, Part>> {
  return JSON.parse(Buffer.from(content.buffer).toString()) as Partial<Record<ContentPart, Part>>
}

function partsOf({ content, lengths }: ContentOfCall): Partial<Record<ContentPart, Part>> {
  const parts: Partial<Record<ContentPart, Part>> = {}
  for (const [part, bytes] of Object.entries(partsOfContent(content, lengths))) {
    const sha256 = digestOf(bytes)
    parts[part as ContentPart] = isUtf8(bytes)
      ? { text: bytes.toString(), sha256 }
      : { base64: bytes.toString('base64'), sha256 }
  }
  return parts
}

/** Query parameters that select the content to delete: `docs/api.md: Content log`. */
export const contentDeletionQuery = z.object({
  user: wholeNumber(),
  token: wholeNumber(),
  from: unixSeconds(),
  to: unixSeconds(),
})

/** Deletes the content of calls of a user, or of one of its tokens, that began in a period. */
export async function deleteContent(
  services: ContentServices,
  { user: userId, token: tokenId, from = 0, to }: z.output<typeof contentDeletionQuery>,
  by: User,
): Promise<undefined> {
  const { store } = services
  const fromMs = from * 1000
  const toMs = Math.min(services.nowMs() + 1, to === undefined ? Infinity : to * 1000)
  if (to !== undefined && to <= from)
    throw new GatewayError('invalid_request', 'to: expected a time after from')
  // Users who may not see the accounts of others get the answer for ids that do not exist.
  const isVisible = (id: number): boolean => id === by.id || by.role >= Role.admin
  if (userId !== undefined && !isVisible(userId)) userNotFound(userId)
  const holder = tokenId === undefined ? undefined : await holderOf(store, tokenId)
  if (holder && !isVisible(holder.id)) throw tokenNotFound()
  const owner = userId === undefined ? (holder ?? by) : userId === by.id ? by : await findUser(store, userId)
  if (holder && holder.id !== owner.id) throw tokenNotFound()
  if (owner.id !== by.id) requireManageableUser(by, owner)
  const period = { userId: owner.id, tokenId, fromMs, toMs }
  await store.write('recordContentDeletion', { ...period, username: owner.username })
  await services.content.delete(period).catch((error: unknown) => {
    throw new GatewayError(
      'storage_unavailable',
      'the content log cannot be written now: what was said may not be deleted',
      { cause: error },
    )
  })
}

/** The user to whom a token belongs. The token may be deleted already. */
async function holderOf(store: ContentServices['store'], tokenId: number): Promise<User> {
  const [token] = await store.read('tokenNames', { tokenIds: [tokenId] })
  const holder = token && (await store.read('userByName', token.username))
  if (!holder) throw tokenNotFound()
  return holder
}

function tokenNotFound(): GatewayError {
  return new GatewayError('not_found', 'there is no token with this id')
}

/**
 * Deletes all content of a user whose account is deleted, and records that in the audit log if there was any.
 */
export async function deleteContentOfUser(
  { store, content, nowMs }: Pick<ManagementServices, 'store' | 'content' | 'nowMs'>,
  { id: userId, username }: Pick<User, 'id' | 'username'>,
): Promise<void> {
  const period = { tokenId: undefined, fromMs: 0, toMs: nowMs() + 1 }
  const wasKept = await content.delete({ userId, ...period })
  if (wasKept) await store.write('recordContentDeletion', { userId, username, ...period })
}
