import type { Response } from '../../server/response.ts'
import type { OpenEndpoint } from '../endpoint.ts'

const PLAIN = ['text/plain']

/** 200 for as long as the process runs. */
export const healthz: OpenEndpoint = {
  method: 'GET',
  path: '/healthz',
  isQuiet: true,
  summary: 'Whether the process runs',
  fails: 'never',
  gives: PLAIN,
  area: 'relay',
  door: 'raw',
  access: 'anyone',
  handle: ({ response }) => say(response, 200, 'ok'),
}

/** 200 while calls are taken; 503 before, while draining, and while the database cannot be written. */
export const readyz: OpenEndpoint = {
  method: 'GET',
  path: '/readyz',
  isQuiet: true,
  summary: 'Whether calls are taken',
  failsInText: [503],
  gives: PLAIN,
  area: 'relay',
  door: 'raw',
  access: 'anyone',
  async handle({ response }, isReady) {
    if (await isReady()) say(response, 200, 'ready')
    else say(response, 503, 'not ready')
  },
}

function say(response: Response, status: number, word: string): void {
  const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' }
  response.writeHead(status, status === 503 ? { ...headers, 'retry-after': '5' } : headers).end(`${word}\n`)
}
