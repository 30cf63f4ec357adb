import { z } from 'zod'
import type { User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import { idsFilter, readInput, textField, textsFilter } from '../input-fields.ts'
import { offsetOf, pageObject, type PageRequest, pageOfQuery, pageQuery } from '../page.ts'
import type { AdministrationServices } from '../services.ts'

/** Maximum number of failed lines that are shown with a batch. */
const MAX_FAILED_LINES = 100

const STATUSES = ['in_progress', 'finalizing', 'cancelling', 'completed', 'expired', 'cancelled'] as const

/** A batch of a user, without its lines. */
export interface ManagedBatch {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  /** Path of the endpoint of all lines. */
  readonly endpoint: string
  /** The model of all lines; null if they have several. */
  readonly model: string | null
  readonly status: (typeof STATUSES)[number]
  readonly total: number
  readonly counts: Readonly<Record<'completed' | 'failed' | 'expired' | 'cancelled', number>>
  /** Quota units that are reserved for the lines that have not ended. */
  readonly held: number
  readonly createdMs: number
  readonly expiresMs: number
  readonly endedMs: number | undefined
  /** Whether it has lines with a result and lines with an error, which can be read once it has ended. */
  readonly hasResults: boolean
  readonly hasErrors: boolean
}

/** A line that has failed. */
const failedLineSchema = z.object({
  custom_id: z.string(),
  status: z.int().nullable().describe('HTTP status; null if no call was made for the line'),
  code: z.string(),
  message: z.string(),
})
export type FailedLine = z.output<typeof failedLineSchema>

/** The batches of all users. */
export interface BatchSource {
  /** The id of the user of a batch; undefined if there is no such batch. */
  ownerOf(id: string): Promise<number | undefined>
  find(userId: number, id: string): Promise<ManagedBatch | undefined>
  /** Resolves to false if the batch has ended. */
  cancel(userId: number, id: string): Promise<boolean>
  failedLines(userId: number, id: string, maximum: number): Promise<readonly FailedLine[]>
  /** The results of a batch that has ended, or its errors, as JSON lines. Rejects with `not_found` if they are not kept. */
  lines(userId: number, id: string, which: 'results' | 'errors'): AsyncIterable<string>
}

type Services = Pick<AdministrationServices, 'store' | 'batches' | 'nowMs'>
type Viewer = Pick<User, 'id' | 'role'>

/** A batch as responses show it; `docs/batches.md: Over HTTP`. */
export const batchSchema = z.object({
  id: z.string(),
  user_id: z.int(),
  username: z.string(),
  token_id: z.int(),
  token_name: z.string(),
  endpoint: z.string(),
  model: z.string().nullable().describe('of all lines; null if they have several'),
  status: z.enum(STATUSES),
  total: z.int().describe('lines'),
  completed: z.int(),
  failed: z.int(),
  expired: z.int(),
  cancelled: z.int(),
  quota: z.int().describe('cost so far in quota units'),
  saved: z.int().describe('quota units that the lines cost less than at the full price'),
  held: z.int().describe('quota units that are reserved for lines that have not ended'),
  created_at: z.int().describe('Unix seconds'),
  expires_at: z.int(),
  ended_at: z.int().nullable(),
  has_results: z.boolean(),
  has_errors: z.boolean(),
})
type BatchObject = z.output<typeof batchSchema>

/** A batch with the first lines that have failed. */
export const batchDetailSchema = batchSchema.extend({ errors: z.array(failedLineSchema) })

export const batchPath = z.object({ id: textField('expected the id of a batch', 64) })

/** Query parameters for batches. `user_id` and `username` have an effect only for administrators. */
export const batchesQuery = z.object({
  user_id: idsFilter(),
  username: textsFilter(),
  ...pageQuery.shape,
})

/** A page of batches, the newest first. Administrators see those of all users, others their own. */
export async function listBatches(services: Services, query: z.output<typeof batchesQuery>, user: Viewer) {
  const whose = user.role >= Role.admin ? await usersIn(services, query) : [user.id]
  return pageOfBatches(services, pageOfQuery(query), whose)
}

async function usersIn(
  { store }: Services,
  { user_id, username }: z.output<typeof batchesQuery>,
): Promise<readonly number[] | undefined> {
  if (username === undefined) return user_id
  const found = await Promise.all(username.map((name) => store.read('userByName', name)))
  const ids = found.flatMap((user) => (user ? [user.id] : []))
  return user_id === undefined ? ids : ids.filter((id) => user_id.includes(id))
}

async function pageOfBatches(services: Services, page: PageRequest, userIds?: readonly number[]) {
  const { store, batches, nowMs } = services
  const { total, ids } = await store.read('batchPage', {
    userIds,
    offset: offsetOf(page),
    limit: page.pageSize,
    nowMs: nowMs(),
  })
  const found = await Promise.all(ids.map(({ id, userId }) => batches.find(userId, id)))
  const present = found.filter((batch) => batch !== undefined)
  return pageObject(page, total, await batchObjects(services, present))
}

/** A batch of the user, or of any user for administrators. Rejects with `not_found`. */
export async function showBatch(
  services: Services,
  id: string,
  user: Viewer | undefined,
): Promise<z.output<typeof batchDetailSchema>> {
  const batch = await findBatch(services, id, user)
  const [shown] = await batchObjects(services, [batch])
  const errors = await services.batches.failedLines(batch.userId, id, MAX_FAILED_LINES)
  return { ...(shown as BatchObject), errors: [...errors] }
}

/** Cancels a batch of the user, or of any user for administrators, and records that in the audit log. */
export async function cancelBatch(
  services: Services,
  id: string,
  user: Viewer | undefined,
): Promise<z.output<typeof batchDetailSchema>> {
  const { userId, status } = await findBatch(services, id, user)
  if (!(await services.batches.cancel(userId, id)))
    throw new GatewayError('invalid_request', 'this batch has ended and cannot be cancelled')
  // A repeated request changes nothing, so it has no entry.
  if (status !== 'cancelling') await services.store.write('recordBatchCancel', { batchId: id })
  return showBatch(services, id, user)
}

/** The results or errors of an own batch as JSON lines. Others', which only their users may read, are a `not_found`. */
export async function batchLines(
  services: Services,
  id: string,
  which: 'results' | 'errors',
  user: Pick<User, 'id'>,
): Promise<AsyncIterable<string>> {
  const batch = await services.batches.find(user.id, id)
  if (!batch) throw unknownBatch()
  if (!(which === 'results' ? batch.hasResults : batch.hasErrors))
    throw new GatewayError('not_found', `this batch has no ${which}, or not yet`)
  return services.batches.lines(user.id, id, which)
}

async function findBatch({ batches }: Services, id: string, user: Viewer | undefined): Promise<ManagedBatch> {
  const isAny = user === undefined || user.role >= Role.admin
  const userId = isAny ? await batches.ownerOf(id) : user.id
  const batch = userId === undefined ? undefined : await batches.find(userId, id)
  if (!batch) throw unknownBatch()
  return batch
}

async function batchObjects({ store }: Services, batches: readonly ManagedBatch[]): Promise<BatchObject[]> {
  if (batches.length === 0) return []
  const sums = await store.read('batchSums', { ids: batches.map(({ id }) => id) })
  const sumOf = new Map(sums.map((sum) => [sum.batch, sum]))
  const names = await store.read('tokenNames', { tokenIds: batches.map(({ tokenId }) => tokenId) })
  const namesOf = new Map(names.map((name) => [name.token_id, name]))
  return batches.map((batch) => ({
    id: batch.id,
    user_id: batch.userId,
    username: namesOf.get(batch.tokenId)?.username ?? '',
    token_id: batch.tokenId,
    token_name: namesOf.get(batch.tokenId)?.token_name ?? '',
    endpoint: batch.endpoint,
    model: batch.model,
    status: batch.status,
    total: batch.total,
    ...batch.counts,
    quota: sumOf.get(batch.id)?.quota ?? 0,
    saved: sumOf.get(batch.id)?.saved ?? 0,
    held: batch.held,
    created_at: Math.floor(batch.createdMs / 1000),
    expires_at: Math.floor(batch.expiresMs / 1000),
    ended_at: batch.endedMs === undefined ? null : Math.floor(batch.endedMs / 1000),
    has_results: batch.hasResults,
    has_errors: batch.hasErrors,
  }))
}

function unknownBatch(): GatewayError {
  return new GatewayError('not_found', 'there is no batch with this id')
}

const listInput = z.object({
  username: z.string().max(100).optional(),
  limit: z.int().min(1).max(1_000).default(100),
})

/** The newest batches of all users, or of one, for commands. */
export async function listAllBatches(
  services: Services,
  given: z.input<typeof listInput>,
): Promise<BatchObject[]> {
  const { username, limit } = readInput(listInput, given)
  const whose = username === undefined ? undefined : await usersIn(services, { username: [username] })
  if (whose?.length === 0) throw new GatewayError('not_found', `there is no user "${username}"`)
  return (await pageOfBatches(services, { page: 1, pageSize: limit }, whose)).items
}

/** A batch of any user, for commands. */
export function showAnyBatch(services: Services, given: z.input<typeof batchPath>) {
  return showBatch(services, readInput(batchPath, given).id, undefined)
}

/** Cancels a batch of any user, for commands. */
export function cancelAnyBatch(services: Services, given: z.input<typeof batchPath>) {
  return cancelBatch(services, readInput(batchPath, given).id, undefined)
}
