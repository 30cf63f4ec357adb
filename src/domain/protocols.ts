import type { ProviderName } from './records/channel.ts'

/** A protocol of upstreams, with the properties that several modules need. */
interface ProtocolRow {
  /** Whether its calls are conversations, which can be converted between protocols. */
  readonly isConversation: boolean
  /** Whether clients may use it as well. */
  readonly hasClients: boolean
  /** Endpoint type of the models of its channels in model lists; undefined if the lists have none. */
  readonly endpointType: 'vendor' | 'compat' | undefined
  /** Whether its channels embed texts. */
  readonly embeds: boolean
  /** Vendor whose tool prices apply if the upstream's address does not imply another vendor. */
  readonly vendor: 'openai' | 'anthropic' | 'google'
  /** Whether its requests can offer tools that the provider runs. */
  readonly hasTools: boolean
  /** Whether its providers sign parts of their replies. */
  readonly isSigned: boolean
  /** Providers whose upstreams use it. */
  readonly providers: readonly ProviderName[]
  /**
   * Number of the channel type for upstreams of unknown vendors with this protocol; undefined if there is
   * none.
   */
  readonly channelType: number | undefined
}

/**
 * Protocols of upstreams. A module that decides something for each protocol has a table with an entry for
 * every one.
 */
export const PROTOCOLS = {
  chat: {
    isConversation: true,
    hasClients: true,
    endpointType: 'compat',
    embeds: true,
    vendor: 'openai',
    hasTools: true,
    isSigned: false,
    providers: ['azure', 'vertex'],
    channelType: 8,
  },
  messages: {
    isConversation: true,
    hasClients: true,
    endpointType: 'vendor',
    embeds: false,
    vendor: 'anthropic',
    hasTools: true,
    isSigned: true,
    providers: ['azure', 'bedrock', 'vertex'],
    channelType: 14,
  },
  responses: {
    isConversation: true,
    hasClients: true,
    endpointType: 'compat',
    embeds: false,
    vendor: 'openai',
    hasTools: true,
    isSigned: true,
    providers: ['azure'],
    channelType: undefined,
  },
  gemini: {
    isConversation: true,
    hasClients: true,
    endpointType: 'compat',
    embeds: true,
    vendor: 'google',
    hasTools: true,
    isSigned: true,
    providers: ['vertex'],
    channelType: 24,
  },
  converse: {
    isConversation: true,
    hasClients: false,
    endpointType: 'compat',
    embeds: true,
    vendor: 'anthropic',
    hasTools: false,
    isSigned: true,
    providers: ['bedrock'],
    channelType: undefined,
  },
  rerank: {
    isConversation: false,
    hasClients: true,
    endpointType: undefined,
    embeds: false,
    vendor: 'openai',
    hasTools: false,
    isSigned: false,
    providers: [],
    channelType: 34,
  },
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
