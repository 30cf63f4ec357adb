import type { Server } from 'node:http'
import { azureUpstream } from './azure.ts'
import { type Behaviour, USUAL_OUTCOME } from './batches/behaviour.ts'
import { GeminiBatches } from './batches/gemini-batches.ts'
import { MessageBatches } from './batches/message-batches.ts'
import { OpenAiBatches } from './batches/openai-batches.ts'
import { bedrockUpstream } from './bedrock.ts'
import { chatUpstream } from './chat.ts'
import { DEMO_MODELS } from './demo-models.ts'
import { embeddingsUpstream } from './embeddings.ts'
import { geminiUpstream } from './gemini.ts'
import { DEMO_MCP_SERVERS } from './mcp/demo-servers.ts'
import { serveMcp } from './mcp/mcp-server.ts'
import { mediaUpstream } from './media-upstream.ts'
import { messagesUpstream } from './messages.ts'
import { REALISTIC_PACE, type Pace } from './pace.ts'
import { PromptCache, type PromptCacheOptions } from './prompt-cache.ts'
import { rerankUpstream } from './rerank.ts'
import { ResponseHistory } from './response-history.ts'
import { responsesUpstream } from './responses.ts'
import { serveUpstream } from './server.ts'

/** Options of the simulated upstreams. Those of the prompt cache apply to the cache of each upstream. */
export interface SimulatorOptions extends PromptCacheOptions {
  /** Additional models, by protocol or endpoint. */
  readonly models?: Readonly<Partial<Record<keyof typeof DEMO_MODELS, readonly string[]>>>
}

/** The running upstreams; their base URLs end with the version of the API. */
export interface Simulator {
  readonly chatUrl: string
  /** Base URL of the simulated Azure, whose paths begin with `/openai`. It has the models of chat. */
  readonly azureUrl: string
  readonly messagesUrl: string
  readonly responsesUrl: string
  readonly geminiUrl: string
  /** Base URL of the simulated Bedrock, which has no version in its path. */
  readonly bedrockUrl: string
  readonly rerankUrl: string
  readonly embeddingsUrl: string
  readonly mediaUrl: string
  /** Servers of tools, by name. */
  readonly mcpUrls: ReadonlyMap<string, string>
  /** Closes every connection and waits until the ports are free. */
  close(): Promise<void>
}

/** Starts one upstream per protocol on free ports of the loopback address, for `sluice demo`. */
export async function startSimulator(
  pace: Pace = REALISTIC_PACE,
  { models: added = {}, ...cached }: SimulatorOptions = {},
): Promise<Simulator> {
  const models = (protocol: keyof typeof DEMO_MODELS): string[] => [
    ...DEMO_MODELS[protocol],
    ...(added[protocol] ?? []),
  ]
  const cache = (): PromptCache => new PromptCache(cached)
  const ofChat = chatUpstream(models('chat'), cache())
  const ofMessages = messagesUpstream(models('messages'), cache())
  const ofResponses = responsesUpstream(models('responses'), cache(), new ResponseHistory())
  const ofGemini = geminiUpstream(models('gemini'), cache())
  const ofEmbeddings = embeddingsUpstream(models('embeddings'))
  const endpoints = new Map([
    ['/v1/chat/completions', ofChat],
    ['/v1/completions', ofChat],
    ['/v1/moderations', ofChat],
    ['/v1/responses', ofResponses],
    ['/v1/embeddings', ofEmbeddings],
  ])
  const batched = { behaviour: usualBehaviour(pace), now: cached.now ?? Date.now }
  const openAiBatches = new OpenAiBatches({ vendor: 'openai', endpoints, ...batched })
  const azureBatches = new OpenAiBatches({ vendor: 'azure', endpoints, ...batched })
  const messageBatches = new MessageBatches(ofMessages, batched)
  const geminiBatches = new GeminiBatches(ofGemini, batched)
  const [chat, azure, messages, responses, gemini, bedrock, rerank, embeddings, media] = await Promise.all([
    serveUpstream(ofChat, pace, openAiBatches),
    serveUpstream(azureUpstream(ofChat), pace, azureBatches),
    serveUpstream(ofMessages, pace, messageBatches),
    serveUpstream(ofResponses, pace, openAiBatches),
    serveUpstream(ofGemini, pace, geminiBatches),
    serveUpstream(bedrockUpstream(models('bedrock'), cache()), pace),
    serveUpstream(rerankUpstream(models('rerank')), pace),
    serveUpstream(ofEmbeddings, pace, openAiBatches),
    serveUpstream(mediaUpstream(models('media')), pace),
  ])
  const all = [chat, azure, messages, responses, gemini, bedrock, rerank, embeddings, media]
  const tools = await Promise.all(
    Object.entries(DEMO_MCP_SERVERS).map(async ([name, behaviour]) => ({
      name,
      ...(await serveMcp(behaviour)),
    })),
  )
  const servers = [...all, ...tools].map(({ server }) => server)
  return {
    chatUrl: chat.url,
    azureUrl: new URL(azure.url).origin,
    messagesUrl: messages.url,
    responsesUrl: responses.url,
    geminiUrl: gemini.url,
    bedrockUrl: new URL(bedrock.url).origin,
    rerankUrl: rerank.url,
    embeddingsUrl: embeddings.url,
    mediaUrl: media.url,
    mcpUrls: new Map(tools.map(({ name, url }) => [name, url])),
    close: async () => {
      await Promise.all(servers.map(closed))
      const apis = [openAiBatches, azureBatches, messageBatches, geminiBatches]
      await Promise.all(apis.map(({ work }) => work.close()))
    },
  }
}

/** Batches take some twenty seconds at the pace of a real model, and no time if models take none. */
function usualBehaviour({ firstTokenMs, maxWholeMs }: Pace): Behaviour {
  return {
    validating_ms: 4 * firstTokenMs,
    running_ms: 40 * maxWholeMs,
    finalizing_ms: 4 * firstTokenMs,
    cancelling_ms: 4 * firstTokenMs,
    pending_ms: 4 * firstTokenMs,
    ...USUAL_OUTCOME,
  }
}

function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeAllConnections()
  return promise
}
