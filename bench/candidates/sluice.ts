import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { AMPLE, channel, priced, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { freePort } from '../../test/fixtures/port.ts'
import type { Candidate, Running } from './candidate.ts'
import { gatewayRequest } from '../load/requests.ts'
import { startMeasured } from '../measuring/started.ts'
import { CLIENT_KEY, MODELS, SHORT_KEY, type Wire } from '../load/wire.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
/** A limit that is counted but never reached. */
const LIMIT = { requests: 1_000_000_000, tokens: 1_000_000_000_000, window: '60s' }
/** What the short key may spend: some thousand holds of its calls, and the cost of half a million. */
const SHORT_QUOTA = 1_500_000_000

/** Administrators who watch the log: several, because a user may have few live streams. */
export const WATCHERS = Array.from({ length: 20 }, (_, n) => ({
  id: 100 + n,
  accessToken: `the-access-token-of-watcher-${n}`,
}))

/** This gateway with keys, holds, settlement, every rate limit of a call, and its log enabled. */
export const sluice: Candidate = {
  start: (upstreamPort, folder) => startSluice(upstreamPort, folder),
  request: gatewayRequest,
}

/** Another checkout of this gateway, in the folder given by `--against`. */
export const earlier: Candidate = {
  start: (upstreamPort, folder) => startSluice(upstreamPort, folder, earlierCheckout.folder),
  request: gatewayRequest,
}

/** The folder of another checkout; empty if there is none. */
export const earlierCheckout = { folder: '' }

/** Sections of gateway.yaml with which no call has a rate limit. */
export function withoutLimits(upstreamPort: number): Readonly<Record<string, unknown>> {
  const { models, channels } = configuration(upstreamPort, {})
  return { rate_limits: {}, models, channels }
}

/**
 * Starts this gateway, or that of another checkout, with more environment, and more sections of gateway.yaml.
 */
export async function startSluice(
  upstreamPort: number,
  folder: string,
  checkout = REPOSITORY,
  env: Readonly<Record<string, string>> = {},
  sections: Readonly<Record<string, unknown>> = {},
): Promise<Running> {
  const port = await freePort()
  // The configuration is watched by its folder, which must not be that of the log.
  const file = join(folder, 'config', 'gateway.yaml')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, stringify({ ...configuration(upstreamPort), ...sections }))
  const started = await startMeasured({
    // The program itself, which sets the same Node flags as `npm start`.
    command: [join(checkout, 'bin/sluice.mjs'), 'start', '--config', file],
    port,
    folder,
    readyPath: '/readyz',
    env: { PORT: String(port), DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'info', ...env },
  })
  return { ...started, port }
}

function configuration(
  upstreamPort: number,
  limit: { readonly rate_limit?: object } = { rate_limit: LIMIT },
) {
  const upstream = (wire: Wire): object =>
    channel(wire, `http://127.0.0.1:${upstreamPort}/v1`, {
      protocol: wire,
      models: MODELS[wire],
      ...limit,
      // One stream stays open for the whole run.
      timeouts: { total: '2h' },
    })
  const models = priced(Object.values(MODELS).flat())
  return {
    rate_limits: { key: LIMIT, relay: { requests: LIMIT.requests, window: LIMIT.window } },
    models: Object.fromEntries(
      Object.entries(models).map(([name, entry]) => [name, { ...(entry as object), ...limit }]),
    ),
    channels: [upstream('chat'), upstream('messages'), upstream('responses'), upstream('gemini')],
    users: [
      ROOT,
      user(2, 'ann', [
        token(CLIENT_KEY.slice('sk-'.length), { remain_quota: AMPLE }),
        token(SHORT_KEY.slice('sk-'.length), { remain_quota: SHORT_QUOTA }),
      ]),
      ...WATCHERS.map(({ id, accessToken }) =>
        user(id, `watcher-${id}`, [], { role: 10, access_token: accessToken }),
      ),
    ],
  }
}
