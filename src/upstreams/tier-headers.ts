import { firstServedTier, STANDARD } from '@sluice/wire/service-tier'

/** Header in which Bedrock states the tier that served a call, and in which requests name one. */
export const BEDROCK_TIER_HEADER = 'x-amzn-bedrock-service-tier'

/** Header of Vertex with the same meaning. */
export const VERTEX_TIER_HEADER = 'x-vertex-ai-llm-shared-request-type'

/** Header of Vertex that chooses between provisioned throughput and the tiers. */
export const VERTEX_TYPE_HEADER = 'x-vertex-ai-llm-request-type'

/** Values of these headers, by the names of tiers in rows. */
const BEDROCK_VALUES: Readonly<Record<string, string>> = {
  [STANDARD]: 'default',
  flex: 'flex',
  fast: 'priority',
  reserved: 'reserved',
}
const VERTEX_VALUES: Readonly<Record<string, string>> = { flex: 'flex', fast: 'priority' }

/** A tier that a member of a request names, as a header. */
export interface TierHeader {
  /** Name and value; empty for the provider's default tier. */
  readonly header: readonly string[]
  /** Whether the provider lacks the tier, so that it is left out. */
  readonly isLacking: boolean
}

/** The tier of a member as Bedrock's header. */
export function bedrockTier(value: unknown): TierHeader {
  return tierHeader(value, BEDROCK_TIER_HEADER, BEDROCK_VALUES)
}

/** The tier of a member as Vertex's header, which is absent for the standard tier. */
export function vertexTier(value: unknown): TierHeader {
  return tierHeader(value, VERTEX_TIER_HEADER, VERTEX_VALUES)
}

function tierHeader(value: unknown, name: string, values: Readonly<Record<string, string>>): TierHeader {
  const { tier } = firstServedTier(value)
  const text = tier === undefined || !Object.hasOwn(values, tier) ? undefined : values[tier]
  const isLacking = text === undefined && value !== 'auto' && tier !== STANDARD
  return { header: text === undefined ? [] : [name, text], isLacking }
}
