import { type Fields, asList } from './fields.ts'
import type { Reply, ReplyTimeAndIds } from './upstream.ts'

/** Path of moderations of texts. */
export const MODERATIONS_PATH = '/moderations'
const CATEGORIES = ['harassment', 'hate', 'self-harm', 'sexual', 'violence'] as const

/** Creates the reply to a request for moderations. Nothing is flagged, and nothing is billed. */
export function moderationsReply(body: Fields, model: string, stamp: ReplyTimeAndIds): Reply {
  const inputs = typeof body.input === 'string' ? [body.input] : asList(body.input)
  const all = (value: unknown): Fields => Object.fromEntries(CATEGORIES.map((name) => [name, value]))
  const results = inputs.map(() => ({ flagged: false, categories: all(false), category_scores: all(0.001) }))
  return { kind: 'whole', body: { id: stamp.id('modr-'), model, results }, tokens: 0 }
}
