import type { Server } from 'node:http'
import { bedrockUpstream } from './bedrock.ts'
import { chatUpstream } from './chat.ts'
import { DEMO_MODELS } from './demo-models.ts'
import { embeddingsUpstream } from './embeddings.ts'
import { geminiUpstream } from './gemini.ts'
import { mediaUpstream } from './media-upstream.ts'
import { messagesUpstream } from './messages.ts'
import { REALISTIC_PACE, type Pace } from './pace.ts'
import { PromptCache } from './prompt-cache.ts'
import { rerankUpstream } from './rerank.ts'
import { ResponseHistory } from './response-history.ts'
import { responsesUpstream } from './responses.ts'
import { serve } from './server.ts'

/** Running upstreams; their base URLs end with the version. */
export interface Simulator {
  readonly chatUrl: string
  readonly messagesUrl: string
  readonly responsesUrl: string
  readonly geminiUrl: string
  /** Without a version, which Bedrock's addresses lack. */
  readonly bedrockUrl: string
  readonly rerankUrl: string
  readonly embeddingsUrl: string
  readonly mediaUrl: string
  /** Closes every connection and waits until the ports are free. */
  close(): Promise<void>
}

/** Starts one upstream per dialect on free ports of the loopback address, for `sluice demo`. */
export async function startSimulator(pace: Pace = REALISTIC_PACE): Promise<Simulator> {
  const [chat, messages, responses, gemini, bedrock, rerank, embeddings, media] = await Promise.all([
    serve(chatUpstream(DEMO_MODELS.chat, new PromptCache()), pace),
    serve(messagesUpstream(DEMO_MODELS.messages, new PromptCache()), pace),
    serve(responsesUpstream(DEMO_MODELS.responses, new PromptCache(), new ResponseHistory()), pace),
    serve(geminiUpstream(DEMO_MODELS.gemini, new PromptCache()), pace),
    serve(bedrockUpstream(DEMO_MODELS.bedrock, new PromptCache()), pace),
    serve(rerankUpstream(DEMO_MODELS.rerank), pace),
    serve(embeddingsUpstream(DEMO_MODELS.embeddings), pace),
    serve(mediaUpstream(DEMO_MODELS.media), pace),
  ])
  const all = [chat, messages, responses, gemini, bedrock, rerank, embeddings, media]
  const servers = all.map(({ server }) => server)
  return {
    chatUrl: chat.url,
    messagesUrl: messages.url,
    responsesUrl: responses.url,
    geminiUrl: gemini.url,
    bedrockUrl: new URL(bedrock.url).origin,
    rerankUrl: rerank.url,
    embeddingsUrl: embeddings.url,
    mediaUrl: media.url,
    close: async () => void (await Promise.all(servers.map(closed))),
  }
}

function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeAllConnections()
  return promise
}
