import { protocolsThat } from '../../../domain/protocols.ts'

/** Protocols of the channels that serve embeddings. */
export const SERVING = protocolsThat(({ embeds }) => embeds)
