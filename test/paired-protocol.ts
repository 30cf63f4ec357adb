import type { ClientProtocol } from '../src/domain/protocols.ts'

/** The two protocols between which the gateway converts the calls of its clients. */
export type PairedProtocol = Exclude<ClientProtocol, 'responses' | 'gemini'>
