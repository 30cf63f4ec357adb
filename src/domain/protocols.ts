import type { ProviderName } from './records/channel.ts'

/** A protocol of upstreams: the decisions that several places need about it. */
interface ProtocolRow {
  /** Whether its calls are conversations, which are converted between protocols. */
  readonly isConversation: boolean
  /** Whether clients may speak it as well. */
  readonly hasClients: boolean
  /** Endpoint type of the models of its channels; undefined where these lists have none. */
  readonly endpointType: 'vendor' | 'compat' | undefined
  /** Whether its channels embed texts. */
  readonly embeds: boolean
  /** Vendor whose list of tools holds where an upstream's address says nothing else. */
  readonly vendor: 'openai' | 'anthropic' | 'google'
  /** Whether its requests can offer tools that the provider runs. */
  readonly hasTools: boolean
  /** Whether its providers sign parts of their replies. */
  readonly isSigned: boolean
  /** Providers whose upstreams speak it. */
  readonly providers: readonly ProviderName[]
  /** Number of the channel type of unknown vendors that speak it; undefined without one. */
  readonly channelType: number | undefined
}

/** Protocols of upstreams. Where another layer decides something for each of them, it has a total table. */
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

/** Protocols that clients may speak. */
export type ServedProtocol = NamesWith<{ readonly hasClients: true }>

/** Protocols that a conversation can be written to. */
export type ConversionProtocol = NamesWith<{ readonly isConversation: true }>

/** Protocols that a conversation can be read from and written to. */
export type ClientProtocol = ServedProtocol & ConversionProtocol

/** The protocols in their order. */
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as ProtocolName[]

/** Lists the protocols with a property, in their order. */
export function protocolsThat(has: (row: ProtocolRow) => boolean): ProtocolName[] {
  return PROTOCOL_NAMES.filter((name) => has(PROTOCOLS[name]))
}
