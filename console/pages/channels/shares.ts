import type { Channel } from '../../api/channels.ts'

const ENABLED = 1

/**
 * The share of calls that each channel gets among those of its priority, where all serve the same models: from 0
 * to 1, by id. Channels without a weight count as the weight 1.
 */
export function sharesOf(
  channels: readonly Pick<Channel, 'id' | 'status' | 'priority' | 'weight'>[],
): ReadonlyMap<number, number> {
  const enabled = channels.filter(({ status }) => status === ENABLED)
  const sums = new Map<number, number>()
  for (const { priority, weight } of enabled) sums.set(priority, (sums.get(priority) ?? 0) + (weight || 1))
  return new Map(enabled.map(({ id, priority, weight }) => [id, (weight || 1) / (sums.get(priority) ?? 1)]))
}
