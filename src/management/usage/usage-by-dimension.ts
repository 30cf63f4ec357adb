import { z } from 'zod'
import { promptTokens } from '@sluice/wire/usage'
import { USAGE_DIMENSIONS } from '../../domain/usage-dimension.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput } from '../read-input.ts'


const EXPECTED_DAY = 'expected a day such as 2027-01-31'
const day = z
  .string({ error: EXPECTED_DAY })
  .refine((text) => z.iso.date().safeParse(text).success, { error: EXPECTED_DAY })
  .optional()

const INPUT = z.object(
  {
    by: z.enum(USAGE_DIMENSIONS, { error: `expected one of ${USAGE_DIMENSIONS.join(', ')}` }),
    /** First and last day (UTC), both inclusive. */
    from: day,
    to: day,
  },
  { error: 'expected an object with by' },
)

/** The usage of one model, user, key, channel or day in a period. */
export interface UsageLine {
  readonly name: string
  /** The id of the user or key; null for other dimensions. */
  readonly id: number | null
  readonly requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  /** Quota units charged. */
  readonly quota: number
}

/** Usage by one dimension over whole days (UTC), as charged; by default the 30 days until today. */
export async function usageByDimension(
  { store, nowMs }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<UsageLine[]> {
  const { by, from, to } = readInput(INPUT, given)
  const last = dayNumber(to) ?? Math.floor(nowMs() / DAY_MS)
  const first = dayNumber(from) ?? last - DEFAULT_DAYS + 1
  if (first > last) throw new GatewayError('invalid_request', 'from: expected a day that is not after "to"')
  const groups = await store.read('usageGroups', { by, days: { first, last } })
  return groups.map(({ name, id, requests, quota, usage }) => ({
    name,
    id: id ?? null,
    requests,
    prompt_tokens: promptTokens(usage),
    completion_tokens: usage.output,
    quota,
  }))
}

function dayNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text) / DAY_MS
}
