import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { UPSTREAM_PROTOCOLS } from '../../../domain/protocols.ts'

/** Protocols of the channels that serve embeddings. */
export const SERVING = PROTOCOL_NAMES.filter((name) => UPSTREAM_PROTOCOLS[name].serves.includes('embeddings'))
