import type { Channel, ProtocolName } from '../domain/channel.ts'
import { withoutThinkingSuffix } from './messages/index.ts'

/** Dialects of models on Vertex by the upstream's name; the first pattern that matches decides. */
const ON_VERTEX: readonly (readonly [pattern: RegExp, dialect: ProtocolName])[] = [
  [/^claude/i, 'messages'],
  [/^gemini|embedding/i, 'gemini'],
  [/^/, 'chat'],
]

/**
 * Dialects in which a channel can be asked for the model `name`, as a client names it. A channel of Vertex
 * serves each model in one of its dialects alone.
 */
export function channelProtocols(
  { protocols, provider, modelMapping }: Pick<Channel, 'protocols' | 'provider' | 'modelMapping'>,
  name: string,
): readonly ProtocolName[] {
  if (protocols.length === 1 || provider?.name !== 'vertex') return protocols
  const plain = withoutThinkingSuffix(name) ?? name
  const model = modelMapping.get(name) ?? modelMapping.get(plain) ?? name
  const own = ON_VERTEX.find(([pattern]) => pattern.test(model))?.[1]
  return own !== undefined && protocols.includes(own) ? [own] : protocols
}
