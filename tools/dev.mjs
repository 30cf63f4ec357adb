// `npm run dev`: the demo's gateway and simulated upstreams, run from sources and restarted when a file of
// src or packages changes, and the console with hot reload in front of it. The data, including the key that
// the first start prints, is kept as long as this process runs, unless DATA_DIR is set. With `--world`, the
// gateway has the users, channels and calls of e2e/console/world.ts.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { watch } from 'chokidar'
import { createServer } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const { env } = process
const withWorld = process.argv.includes('--world')
if (withWorld && env.DATA_DIR !== undefined) {
  console.error('--world makes data of its own: unset DATA_DIR')
  process.exit(1)
}
const folder = env.DATA_DIR ?? mkdtempSync(join(tmpdir(), 'sluice-dev-'))
const world = withWorld ? await startWorld() : undefined

// The running gateway; undefined between its end and the next start.
let gateway
let [isStopping, isRestarting] = [false, false]
const { promise: stopped, resolve: stop } = Promise.withResolvers()

function start() {
  isRestarting = false
  const command = world ? ['start', '--config', world.config] : ['demo']
  gateway = spawn(process.execPath, [join(root, 'src/cli/main.ts'), ...command], {
    stdio: 'inherit',
    // Compiled code is kept between starts.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'), ...env, DATA_DIR: folder },
  })
  gateway.once('exit', () => {
    gateway = undefined
    if (isStopping) stop()
    else if (isRestarting) start()
    else console.log('The gateway has ended. It starts again when a file changes.')
  })
}

/** Creates the world of e2e/console/world.ts, with upstreams that run in this process. */
async function startWorld() {
  console.log('Making the world: 100,000 calls, which take about half a minute')
  const [{ makeWorld }, { PASSWORDS }, { startSimulator }, { secretOfDataFolder }, { deriveSecrets }] =
    await Promise.all([
      import('../e2e/console/world.ts'),
      import('../e2e/console/world-catalogue.ts'),
      import('@sluice/simulator'),
      import('../src/store/data-folder.ts'),
      import('../src/store/secrets.ts'),
    ])
  const upstreams = await startSimulator()
  const config = await makeWorld({
    dataDir: folder,
    secrets: deriveSecrets(secretOfDataFolder(folder)),
    upstreams,
    root: { accessToken: randomBytes(16).toString('hex'), key: randomBytes(24).toString('hex') },
  })
  for (const [name, password] of Object.entries(PASSWORDS)) console.log(`Sign in as "${name}", "${password}"`)
  return { config, upstreams }
}

start()
// Node's own --watch sends messages to worker threads, which mistake them for ours.
const watcher = watch([join(root, 'src'), join(root, 'packages')], { ignoreInitial: true }).on(
  'all',
  (_, path) => {
    // A second signal would abort calls under way.
    if (path.endsWith('.test.ts') || isRestarting || isStopping) return
    console.log(`${relative(root, path)} has changed: the gateway starts again`)
    isRestarting = true
    if (gateway) gateway.kill('SIGTERM')
    else start()
  },
)
const pages = await createServer({ configFile: join(root, 'console/vite.config.ts') })
await pages.listen()
console.log(`The console with hot reload: ${pages.resolvedUrls?.local[0]}`)

for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    isStopping = true
    if (gateway) gateway.kill(signal)
    else stop()
  })
await stopped
await Promise.all([watcher.close(), pages.close(), world?.upstreams.close()])
if (env.DATA_DIR === undefined) rmSync(folder, { recursive: true, force: true })
