import type { Channel, ProtocolName } from '../../domain/channel.ts'
import { channelProtocols } from '../../protocols/channel-protocols.ts'
import { withoutThinkingSuffix } from '../../protocols/messages/index.ts'

/** The dialects that each client's calls can be converted to, those that keep more of them first. */
const NEAREST: Readonly<Record<ProtocolName, readonly ProtocolName[]>> = {
  chat: ['responses', 'messages', 'gemini', 'converse'],
  messages: ['responses', 'gemini', 'converse', 'chat'],
  responses: ['messages', 'gemini', 'converse', 'chat'],
  gemini: ['messages', 'responses', 'converse', 'chat'],
  converse: [],
  rerank: [],
}

/**
 * The dialect in which a channel is asked for the model `name`: the client's own where the channel speaks it,
 * else the nearest that it speaks.
 */
export function spokenDialect(channel: Channel, client: ProtocolName, name: string): ProtocolName {
  const protocols = channelProtocols(channel, name)
  const [first = client] = protocols
  if (protocols.length === 1) return first
  // A thinking suffix that the channel does not list becomes a field of messages requests.
  const hasSuffix = client === 'chat' && withoutThinkingSuffix(name) !== undefined
  if (hasSuffix && !channel.models.includes(name)) return 'messages'
  if (protocols.includes(client)) return client
  return NEAREST[client].find((one) => protocols.includes(one)) ?? first
}
