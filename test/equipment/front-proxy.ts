import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { freePort, statusOn } from './port.ts'

/**
 * A third-party proxy in front of the gateway, which keeps connections to it and shares them between its
 * clients.
 */
export interface FrontProxy {
  readonly port: number
  /** The requests that were passed on to the gateway so far. */
  passedOn(): PassedOn[]
  /** Stops the proxy. */
  readonly stop: () => void
}

/** A request that was passed on, and its response. */
export interface PassedOn {
  readonly status: number
  /**
   * The gateway's request id; undefined where the proxy answered itself because the request continued with
   * invalid bytes.
   */
  readonly id: string | undefined
}

/** How a proxy is started and configured. */
interface Recipe {
  readonly command: (folder: string) => readonly string[]
  readonly configuration: (folder: string, ports: Ports, keptMs: number) => string
  /** Milliseconds for which a client's idle connection is kept by default. */
  readonly keptMs: number
  readonly version: readonly string[]
}

interface Ports {
  /** The port of the proxy. */
  readonly own: number
  readonly gateway: number
}

/** Supported proxies, by the name of their program. */
export const FRONT_PROXIES = {
  nginx: {
    command: (folder) => ['-p', folder, '-c', 'conf', '-e', 'stderr'],
    keptMs: 0,
    version: ['-v'],
    configuration: (folder, { own, gateway }, keptMs) => `
daemon off; master_process off; pid ${folder}/pid; error_log stderr;
events {}
http {
  log_format ids 'gateway $upstream_status $upstream_http_x_request_id';
  access_log ${folder}/log ids;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  keepalive_timeout ${keptMs}ms; client_header_timeout 500ms; client_body_timeout 500ms; proxy_read_timeout 2s;
  upstream gateway { server 127.0.0.1:${gateway}; keepalive 4; }
  server {
    listen 127.0.0.1:${own};
    location / { proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_next_upstream off; }
  }
}`,
  },
  haproxy: {
    command: (folder) => ['-db', '-f', join(folder, 'conf')],
    keptMs: 50,
    version: ['-v'],
    configuration: (_, { own, gateway }, keptMs) => `
global
  log stdout format raw local0 info
defaults
  mode http
  log global
  timeout connect 1s
  timeout client 500ms
  timeout server 2s
  timeout http-request 500ms
  timeout http-keep-alive ${keptMs}ms
frontend in
  bind 127.0.0.1:${own}
  log-format "%s %ST %[var(txn.id)]"
  http-response set-var(txn.id) res.hdr(x-request-id)
  default_backend gateway
backend gateway
  http-reuse always
  retries 0
  server gateway 127.0.0.1:${gateway}
`,
  },
} as const satisfies Record<string, Recipe>

/** The installed version, as the program prints it; undefined where it is not installed. */
export function frontProxyVersion(name: keyof typeof FRONT_PROXIES): string | undefined {
  const program = found(name)
  if (program === undefined) return undefined
  const { stdout, stderr } = spawnSync(program, FRONT_PROXIES[name].version, {
    encoding: 'utf8',
    timeout: 60_000,
  })
  return /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0]
}

/** Starts the proxy in front of a gateway's port; undefined where the program is not installed. */
export async function startFrontProxy(
  name: keyof typeof FRONT_PROXIES,
  gateway: number,
  keptMs: number = FRONT_PROXIES[name].keptMs,
): Promise<FrontProxy | undefined> {
  const program = found(name)
  if (program === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  const recipe: Recipe = FRONT_PROXIES[name]
  const port = await freePort()
  writeFileSync(join(folder, 'conf'), recipe.configuration(folder, { own: port, gateway }, keptMs))
  const child = spawn(program, recipe.command(folder), { stdio: ['ignore', 'pipe', 'pipe'] })
  const said = listen(child)
  const stop = (): void => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  const deadline = performance.now() + 10_000
  while ((await statusOn(port, '/healthz')) !== 200) {
    if (child.exitCode === null && performance.now() < deadline) continue
    stop()
    throw new Error(`${name} did not start: ${said.err}`)
  }
  const log = join(folder, 'log')
  return {
    port,
    stop,
    passedOn: () =>
      (existsSync(log) ? readFileSync(log, 'utf8') : said.out)
        .split('\n')
        .map((line) => /^gateway (\d\d\d) (\S*)/.exec(line))
        .filter((parts) => parts !== null)
        .map(([, status, id = '']) => ({ status: Number(status), id: id.length > 1 ? id : undefined })),
  }
}

function listen({ stdout, stderr }: ChildProcess): { out: string; err: string } {
  const said = { out: '', err: '' }
  stdout?.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  stderr?.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  return said
}

function found(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}
