/** Properties of a protocol of upstreams. */
interface ProtocolRow {
  /** Whether calls in this protocol are conversations, which can be converted to other protocols. */
  readonly isConversation: boolean
  /** Whether clients may use the protocol as well. */
  readonly hasClients: boolean
  /** Whether providers with this protocol sign parts of their replies, and want them back unchanged. */
  readonly isSigned: boolean
  /** Whether a request can ask for several alternative replies. */
  readonly hasChoices: boolean
  /** Whether each event of a stream reports the tokens of the thoughts so far. */
  readonly reportsThoughts: boolean
}

/**
 * The protocols of upstreams and their properties. Any other module whose behaviour depends on the protocol
 * has a table with an entry for each protocol.
 */
export const PROTOCOLS = {
  chat: { isConversation: true, hasClients: true, isSigned: true, hasChoices: true, reportsThoughts: false },
  messages: {
    isConversation: true,
    hasClients: true,
    isSigned: true,
    hasChoices: false,
    reportsThoughts: false,
  },
  responses: {
    isConversation: true,
    hasClients: true,
    isSigned: true,
    hasChoices: false,
    reportsThoughts: false,
  },
  gemini: { isConversation: true, hasClients: true, isSigned: true, hasChoices: true, reportsThoughts: true },
  converse: {
    isConversation: true,
    hasClients: false,
    isSigned: true,
    hasChoices: false,
    reportsThoughts: false,
  },
  rerank: {
    isConversation: false,
    hasClients: true,
    isSigned: false,
    hasChoices: false,
    reportsThoughts: false,
  },
} as const satisfies Record<string, ProtocolRow>

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

/** The names of all protocols, in the order of the table. */
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as ProtocolName[]

/** Lists the protocols for which `has` is true, in the order of the table. */
export function protocolsWithProperty(has: (row: ProtocolRow) => boolean): ProtocolName[] {
  return PROTOCOL_NAMES.filter((name) => has(PROTOCOLS[name]))
}

/** Protocols from and to which a conversation can be converted, in the order of the table. */
export const CLIENT_PROTOCOLS = protocolsWithProperty(
  ({ isConversation, hasClients }) => isConversation && hasClients,
) as ClientProtocol[]
