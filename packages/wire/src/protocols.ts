/** A protocol of upstreams. */
interface ProtocolRow {
  /** Whether its calls are conversations, which can be converted between protocols. */
  readonly isConversation: boolean
  /** Whether clients may use it as well. */
  readonly hasClients: boolean
  /** Whether its providers sign parts of their replies. */
  readonly isSigned: boolean
}

/**
 * Protocols of upstreams. A module that decides something for each protocol has a table with an entry for
 * every one.
 */
export const PROTOCOLS = {
  chat: { isConversation: true, hasClients: true, isSigned: false },
  messages: { isConversation: true, hasClients: true, isSigned: true },
  responses: { isConversation: true, hasClients: true, isSigned: true },
  gemini: { isConversation: true, hasClients: true, isSigned: true },
  converse: { isConversation: true, hasClients: false, isSigned: true },
  rerank: { isConversation: false, hasClients: true, isSigned: false },
} as const satisfies Record<string, ProtocolRow>

/** Name of a protocol of upstreams. */
export type ProtocolName = keyof typeof PROTOCOLS

type NamesWith<Flags> = {
  [Name in ProtocolName]: (typeof PROTOCOLS)[Name] extends Flags ? Name : never
}[ProtocolName]

/** Protocols that clients may use. */
export type ServedProtocol = NamesWith<{ readonly hasClients: true }>

/** Protocols to which a conversation can be converted. */
export type ConversionProtocol = NamesWith<{ readonly isConversation: true }>

/** Protocols from and to which a conversation can be converted. */
export type ClientProtocol = ServedProtocol & ConversionProtocol

/** The protocols, in order. */
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as ProtocolName[]

/** Lists the protocols with a property, in order. */
export function protocolsThat(has: (row: ProtocolRow) => boolean): ProtocolName[] {
  return PROTOCOL_NAMES.filter((name) => has(PROTOCOLS[name]))
}
