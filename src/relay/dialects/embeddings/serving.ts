import type { ProtocolName } from '../../../domain/channel.ts'

/** Protocols of the channels that embed. */
export const SERVING: readonly ProtocolName[] = ['chat', 'gemini', 'converse']
