import { protocolsThat } from '../../../domain/protocols.ts'

/** Protocols of the channels that embed. */
export const SERVING = protocolsThat(({ embeds }) => embeds)
