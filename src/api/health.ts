import type { OpenEndpoint } from './endpoint.ts'

/** 200 for as long as the process runs. */
export const healthz: OpenEndpoint = {
  method: 'GET',
  path: '/healthz',
  area: 'relay',
  access: 'anyone',
  door: 'raw',
  handle({ response }) {
    response.writeHead(200, { 'content-type': 'text/plain', 'cache-control': 'no-store' }).end('ok\n')
  },
}

/** 200 while calls are taken, 503 before and while draining. */
export const readyz: OpenEndpoint = {
  method: 'GET',
  path: '/readyz',
  area: 'relay',
  access: 'anyone',
  door: 'raw',
  handle({ response, isReady }) {
    response.writeHead(isReady ? 200 : 503, { 'content-type': 'text/plain', 'cache-control': 'no-store' })
    response.end(isReady ? 'ready\n' : 'not ready\n')
  },
}
