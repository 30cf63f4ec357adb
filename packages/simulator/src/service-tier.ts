import type { Fields } from './fields.ts'

const OPENAI_TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority', 'ultrafast'])
const GOOGLE_TIERS: ReadonlySet<unknown> = new Set(['standard', 'flex', 'priority'])

/** The tier that chat and responses state: the one that was asked for, else the default. */
export function openAiTier({ service_tier: asked }: Fields): string {
  const tier = asked === 'fast' ? 'priority' : asked
  return OPENAI_TIERS.has(tier) ? String(tier) : 'default'
}

/** What the usage of messages states about speed and region, if the request names them. */
export function messagesService({ speed, inference_geo: region }: Fields): Fields {
  return {
    ...(speed !== undefined && { speed: speed === 'fast' ? 'fast' : 'standard' }),
    ...(typeof region === 'string' && { inference_geo: region }),
  }
}

/** What the usage of Gemini states about the tier, if the request names one. */
export function geminiService({ serviceTier: asked }: Fields): Fields {
  if (typeof asked !== 'string') return {}
  const tier = asked.toLowerCase()
  return { serviceTier: GOOGLE_TIERS.has(tier) ? tier : 'standard' }
}
