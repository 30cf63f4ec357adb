import type { ClientProtocol } from '@sluice/wire/protocols'

/** The two protocols between which the gateway converts the calls of its clients. */
export type PairedProtocol = Exclude<ClientProtocol, 'responses' | 'gemini'>
