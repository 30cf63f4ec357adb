import type { Channel } from '../../api/channels.ts'

const ENABLED = 1

type Weighed = Pick<Channel, 'id' | 'priority' | 'weight' | 'models'> & { readonly status: number }

/**
 * The share (0 to 1) of each enabled channel in the calls of its models, by channel id. A model's calls are
 * divided by weight among the channels with the same priority; the share is the mean over the models of a
 * channel. Without a weight, the weight is 1.
 */
export function trafficSharesOf(channels: readonly Weighed[]): ReadonlyMap<number, number> {
  const enabled = channels.filter(({ status }) => status === ENABLED)
  const sums = new Map<string, number>()
  for (const channel of enabled)
    for (const route of routesOf(channel)) sums.set(route, (sums.get(route) ?? 0) + weightOf(channel))
  return new Map(
    enabled.map((channel) => {
      const routes = routesOf(channel)
      const shares = routes.map((route) => weightOf(channel) / (sums.get(route) ?? 1))
      return [channel.id, shares.reduce((sum, share) => sum + share, 0) / Math.max(1, routes.length)]
    }),
  )
}

/** The routes for which a channel competes with others: a route is a model at a priority. */
function routesOf({ priority, models }: Weighed): readonly string[] {
  return models.split(',').flatMap((model) => (model === '' ? [] : [`${priority} ${model}`]))
}

function weightOf({ weight }: Weighed): number {
  return weight || 1
}
