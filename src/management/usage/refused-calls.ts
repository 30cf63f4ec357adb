import { z } from 'zod'
import type { NamedRefusedCall } from '../../domain/refused-call.ts'
import type { RefusedFilter } from '../../store/operations/refused-calls.ts'
import { textsFilter } from '../input-fields.ts'
import { offsetOf, pageObject, type PageRequest } from '../page.ts'
import type { ManagementServices } from '../services.ts'
import { callFilterOf, ownUsageQuery, periodOfQuery, usageQuery } from './list-usage.ts'

/** The type that the API states for refused calls; settled calls have type 2. */
const REFUSED = 5

const kinds = ['quota', 'budget', 'requests', 'tokens', 'parallel'] as const
const subjects = ['token', 'user', 'group', 'model', 'address'] as const
const amount = z.int().nullable()

const limitSchema = z.object({
  subject: z.enum(subjects),
  id: amount,
  name: z.string().nullable(),
  kind: z.enum(kinds),
  spent: amount,
  held: amount,
  left: amount,
  needed: amount,
  resets_at: amount,
})

/** A refused call; `docs/api.md: Refused calls`. */
export const refusedCallSchema = z.object({
  id: z.string(),
  request_id: z.string(),
  created_at: z.int().meta({ description: 'Unix seconds' }),
  type: z.literal(REFUSED),
  user_id: z.int(),
  username: z.string(),
  token_id: z.int(),
  token_name: z.string(),
  model_name: z.string(),
  group: z.string(),
  kind: z.string(),
  status: z.int(),
  code: z.string(),
  message: z.string(),
  retry_after: z.int().nullable().meta({ description: 'Seconds' }),
  limit: limitSchema.nullable().meta({ description: 'The limit that refused the call' }),
})

export const refusedDetailSchema = refusedCallSchema.extend({
  quota: z.literal(0),
  cost: z.null(),
  attempts: z.array(z.object({})).length(0),
  error: z.object({
    cause: z.string(),
    status: z.int(),
    type: z.string(),
    code: z.string(),
    message: z.string(),
    tried: z.literal(0),
  }),
})

/** Filters of calls that refused calls have no values for. */
const INAPPLICABLE = {
  session: true,
  batch: true,
  cache_break: true,
  reason: true,
  cause: true,
  service_tier: true,
  region: true,
} as const

/** Filters for a list of a user's own refused calls. */
export const ownRefusedQuery = ownUsageQuery.omit(INAPPLICABLE).extend({ code: textsFilter() })

/** Filters for a list of the refused calls of all users. */
export const refusedQuery = usageQuery
  .omit({ ...INAPPLICABLE, channel: true, channel_id: true })
  .extend({ code: textsFilter() })

/** A page of refused calls, the newest first. */
export async function listRefusedCalls(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  query: z.output<typeof refusedQuery> | z.output<typeof ownRefusedQuery>,
  page: PageRequest,
  userId?: number,
) {
  const wanted = query.type === undefined || query.type === 0 || query.type === REFUSED
  const found = wanted
    ? await store.read('listRefusedCalls', {
        filter: refusedFilterOf(query, userId),
        offset: offsetOf(page),
        limit: page.pageSize,
        nowMs: nowMs(),
      })
    : { total: 0, calls: [] }
  return pageObject(page, found.total, found.calls.map(refusedObject))
}

function refusedFilterOf(
  query: z.output<typeof refusedQuery> | z.output<typeof ownRefusedQuery>,
  userId?: number,
): RefusedFilter {
  return {
    ...callFilterOf(query, userId),
    ...periodOfQuery(query),
    id: query.request_id,
    codes: query.code,
  }
}

/**
 * The refused call with this id; undefined if there is none. With `userId`, only calls of that user are
 * found.
 */
export async function refusedCall(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  id: string,
  userId?: number,
): Promise<z.output<typeof refusedDetailSchema> | undefined> {
  const query = { filter: { id, user_id: userId }, offset: 0, limit: 1, nowMs: nowMs() }
  const { calls } = await store.read('listRefusedCalls', query)
  const [call] = calls
  if (!call) return undefined
  const { status, type, code, message } = call
  const error = { cause: code, status, type, code, message, tried: 0 as const }
  return { ...refusedObject(call), quota: 0, cost: null, attempts: [], error }
}

function refusedObject({
  refused_ms,
  model,
  type: _type,
  ...call
}: NamedRefusedCall): z.output<typeof refusedCallSchema> {
  return {
    ...call,
    request_id: call.id,
    created_at: Math.floor(refused_ms / 1000),
    type: REFUSED,
    model_name: model,
  }
}
