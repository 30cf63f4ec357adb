import { withoutThinkingSuffix } from '@sluice/wire/messages'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Channel } from '../../domain/records/channel.ts'

/** Dialects of models on Vertex by the upstream's model name; the first pattern that matches counts. */
const ON_VERTEX: readonly (readonly [pattern: RegExp, dialect: ProtocolName])[] = [
  [/^claude/i, 'messages'],
  [/^gemini|embedding/i, 'gemini'],
  [/^/, 'chat'],
]

/**
 * Dialects in which a channel can serve the model `name`, as a client names it. A Vertex channel serves each
 * model in only one dialect.
 */
export function channelProtocols(
  { protocol: protocols, provider, model_mapping }: Pick<Channel, 'protocol' | 'provider' | 'model_mapping'>,
  name: string,
): readonly ProtocolName[] {
  if (protocols.length === 1 || provider !== 'vertex') return protocols
  const plain = withoutThinkingSuffix(name) ?? name
  const model = model_mapping.get(name) ?? model_mapping.get(plain) ?? name
  const own = ON_VERTEX.find(([pattern]) => pattern.test(model))?.[1]
  return own !== undefined && protocols.includes(own) ? [own] : protocols
}
