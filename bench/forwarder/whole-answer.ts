import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Commits } from './commits.ts'
import { used } from './used.ts'

/** Usage in the measured dialects. */
interface Counted {
  readonly usage?: { readonly total_tokens: number }
  readonly usageMetadata?: { readonly totalTokenCount: number }
}

function tokensOf({ usage, usageMetadata }: Counted): number {
  return usage?.total_tokens ?? usageMetadata?.totalTokenCount ?? 0
}

/** Forwards a whole response once it is complete, and reads its usage. */
export class WholeAnswer implements Dispatcher.DispatchHandler {
  readonly #reply: ServerResponse
  readonly #commits: Commits | undefined
  readonly #chunks: Buffer[] = []

  constructor(reply: ServerResponse, commits: Commits | undefined) {
    this.#reply = reply
    this.#commits = commits
  }

  onRequestStart(): void {}
  onResponseStart(): void {}

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks)
    const tokens = tokensOf(JSON.parse(body.toString()) as Counted)
    used.tokens += tokens
    if (this.#commits) this.#commits.add(tokens, () => this.#send(body))
    else this.#send(body)
  }

  onResponseError(): void {
    this.#reply.destroy()
  }

  #send(body: Buffer): void {
    this.#reply.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
    this.#reply.end(body)
  }
}
