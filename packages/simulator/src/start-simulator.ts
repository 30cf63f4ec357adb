import type { Server } from 'node:http'
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
  const [chat, messages, responses, gemini, bedrock, rerank, embeddings, media] = await Promise.all([
    serveUpstream(chatUpstream(models('chat'), cache()), pace),
    serveUpstream(messagesUpstream(models('messages'), cache()), pace),
    serveUpstream(responsesUpstream(models('responses'), cache(), new ResponseHistory()), pace),
    serveUpstream(geminiUpstream(models('gemini'), cache()), pace),
    serveUpstream(bedrockUpstream(models('bedrock'), cache()), pace),
    serveUpstream(rerankUpstream(models('rerank')), pace),
    serveUpstream(embeddingsUpstream(models('embeddings')), pace),
    serveUpstream(mediaUpstream(models('media')), pace),
  ])
  const all = [chat, messages, responses, gemini, bedrock, rerank, embeddings, media]
  const tools = await Promise.all(
    Object.entries(DEMO_MCP_SERVERS).map(async ([name, behaviour]) => ({
      name,
      ...(await serveMcp(behaviour)),
    })),
  )
  const servers = [...all, ...tools].map(({ server }) => server)
  return {
    chatUrl: chat.url,
    messagesUrl: messages.url,
    responsesUrl: responses.url,
    geminiUrl: gemini.url,
    bedrockUrl: new URL(bedrock.url).origin,
    rerankUrl: rerank.url,
    embeddingsUrl: embeddings.url,
    mediaUrl: media.url,
    mcpUrls: new Map(tools.map(({ name, url }) => [name, url])),
    close: async () => void (await Promise.all(servers.map(closed))),
  }
}

function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeAllConnections()
  return promise
}
