import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import {
  offsetOf,
  orderOfQuery,
  orderQuery,
  pageObject,
  pageOfQuery,
  pageQuery,
  pageSchema,
} from '../page.ts'
import type { AdministrationServices } from '../services.ts'
import { CONDITIONS, healthOfThisNode } from './channel-health.ts'
import { type ChannelObject, channelSchema, findChannel, listAllChannels } from './channel-object.ts'
import { isTestCostly } from './test-cost.ts'

const text = z.string().max(1000, { error: 'expected at most 1000 characters' }).optional()

/** Filters for a list of channels. */
export const channelQuery = pageQuery.extend({
  group: text,
  status: z
    .enum(['1', '2', '0', 'enabled', 'disabled', 'all', '-1', ''], {
      error: 'expected 1 (enabled) or 2 (disabled)',
    })
    .optional(),
  type: z
    .string()
    .regex(/^\d{0,4}$/, { error: 'expected the number of a type' })
    .optional(),
  /** A part of the channel's name or base URL, or its id. */
  keyword: text,
  model: text,
  condition: z
    .enum(['', ...CONDITIONS], { error: `expected one of ${CONDITIONS.join(', ')}` })
    .optional()
    .describe('Their conditions, as this node sees them'),
  ...orderQuery(['name', 'status', 'priority', 'weight']).shape,
})

/**
 * A channel as lists show it. `test_costs` is true if its test generates an image or speech, for which the
 * provider charges.
 */
export const shownChannelSchema = channelSchema.extend({ test_costs: z.boolean() })

export const channelPage = pageSchema(shownChannelSchema)

const STATUSES = new Map<string | undefined, number>([
  ['1', 1],
  ['enabled', 1],
  ['2', 2],
  ['0', 2],
  ['disabled', 2],
])

/** A page of channels: first the stored ones, the oldest first, then the declared ones. */
export async function listChannels(
  services: AdministrationServices,
  query: z.output<typeof channelQuery>,
): Promise<z.output<typeof channelPage>> {
  const found = (await listAllChannels(services)).filter(matching(query))
  const all = sorted(query.condition ? await ofCondition(services, found, query.condition) : found, query)
  const page = pageOfQuery(query)
  const from = offsetOf(page)
  const items = all.slice(from, from + page.pageSize).map((object) => channelWithTestCost(services, object))
  return pageObject(page, all.length, items)
}

async function ofCondition(
  services: AdministrationServices,
  found: readonly ChannelObject[],
  condition: string,
): Promise<ChannelObject[]> {
  const { items } = await healthOfThisNode(services, false)
  const ids = new Set(items.filter((one) => one.condition === condition).map(({ id }) => id))
  return found.filter(({ id }) => ids.has(id))
}

// The sort is stable, so that channels with equal values stay in the order of channel lists.
function sorted(
  found: readonly ChannelObject[],
  query: Pick<z.output<typeof channelQuery>, 'sort' | 'order'>,
): readonly ChannelObject[] {
  const order = orderOfQuery(query)
  if (!order) return found
  const sign = order.isAscending ? 1 : -1
  return found.toSorted((one, other) => sign * compared(one[order.by], other[order.by]))
}

function compared<V extends string | number>(one: V, other: V): number {
  return one === other ? 0 : one < other ? -1 : 1
}

function matching({
  group,
  status,
  type,
  keyword,
  model,
}: z.output<typeof channelQuery>): (channel: ChannelObject) => boolean {
  const wantedStatus = STATUSES.get(status)
  const part = keyword?.trim().toLowerCase() ?? ''
  return (channel) =>
    (!group || group === 'all' || listed(channel.group, group)) &&
    (wantedStatus === undefined || channel.status === wantedStatus) &&
    (!type || channel.type === Number(type)) &&
    (!model || channel.models.split(',').some((name) => name.toLowerCase().includes(model.toLowerCase()))) &&
    (part === '' ||
      String(channel.id) === part ||
      channel.name.toLowerCase().includes(part) ||
      channel.base_url.toLowerCase().includes(part))
}

function listed(text: string, name: string): boolean {
  return text.split(',').includes(name)
}

/** A channel as lists show it. */
export type ShownChannel = z.output<typeof shownChannelSchema>

/** Adds to a channel whether its test generates an image or speech. */
export function channelWithTestCost(
  services: Pick<AdministrationServices, 'liveConfig' | 'settings'>,
  object: ChannelObject,
): ShownChannel {
  return { ...object, test_costs: isTestCostly(services, object) }
}

/**
 * The keys of a stored channel in plain text, one per line. Throws `managed_by_file` for a declared channel.
 */
export async function revealChannelKeys(
  services: AdministrationServices,
  id: number,
): Promise<{ key: string }> {
  const found = await findChannel(services, id)
  if ('stored' in found) {
    await services.store.write('recordReveal', { kind: 'channel', ids: [id] })
    return { key: found.stored.keys.join('\n') }
  }
  throw new GatewayError(
    'managed_by_file',
    `the keys of the channel "${found.declared.name}" are in the configuration, and are not shown`,
  )
}
