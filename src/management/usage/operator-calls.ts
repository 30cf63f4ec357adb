import { z } from 'zod'
import { FAILED_REASONS } from '../../domain/call-outcome.ts'
import { readInput, textField, userField } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { findUser } from '../users/list-users.ts'
import { callIdPath, callOfAnyUser } from './call-detail.ts'
import { listRefusedCalls } from './refused-calls.ts'
import { usageObject } from './usage-object.ts'

/** Maximum number of calls of one list. */
const MAX_CALLS = 1000

const EXPECTED_LIMIT = `expected a whole number from 1 to ${MAX_CALLS}`
const name = textField('expected a name').optional()

const INPUT = z.object(
  {
    user: userField.optional(),
    /** Name of an API key. */
    key: name,
    model: name,
    channel: name,
    limit: z.int().min(1, { error: EXPECTED_LIMIT }).max(MAX_CALLS, { error: EXPECTED_LIMIT }).default(20),
    /** Only calls that failed or were cut short. */
    failed: z.boolean().default(false),
  },
  { error: 'expected an object with filters' },
)

/** The newest settled calls that match all filters; `docs/api.md: Usage log`. */
export async function listCalls(
  { store }: Pick<ManagementServices, 'store'>,
  given: z.input<typeof INPUT>,
): Promise<ReturnType<typeof usageObject>[]> {
  const { user, key, model, channel, limit, failed } = readInput(INPUT, given)
  const { entries } = await store.read('listUsage', {
    filter: {
      user_id: user === undefined ? undefined : (await findUser(store, user)).id,
      token_name: key,
      model,
      channel,
      reasons: failed ? FAILED_REASONS : undefined,
    },
    offset: 0,
    limit,
    order: undefined,
  })
  return entries.map(usageObject)
}

/** The newest refused calls; they have no channel, and are never charged. `docs/api.md: Refused calls`. */
export async function listRefusals(
  services: Pick<ManagementServices, 'store' | 'nowMs'>,
  given: z.input<typeof INPUT>,
) {
  const { user, key, model, limit } = readInput(INPUT, given)
  const userId = user === undefined ? undefined : (await findUser(services.store, user)).id
  const query = {
    token_name: key === undefined ? key : [key],
    model_name: model === undefined ? model : [model],
  }
  return (await listRefusedCalls(services, query, { page: 1, pageSize: limit }, userId)).items
}

/** One call, settled or refused, with its attempts, its error and how its charge is made up. */
export function showCall(
  services: Parameters<typeof callOfAnyUser>[0],
  given: z.input<typeof callIdPath>,
): ReturnType<typeof callOfAnyUser> {
  return callOfAnyUser(services, readInput(callIdPath, given).id)
}
