#!/usr/bin/env node
// Plain JavaScript that every Node can parse. It finds a suitable Node and then runs the command.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { dirname } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { FLAGS } from './flags.mjs'

// Commands that serve calls.
const SERVICES = new Set(['start', 'demo'])
const isService = process.argv.slice(2).some((word) => SERVICES.has(word))

// Older versions truncate text at NUL in node:sqlite, or cannot run TypeScript.
function newEnough([major, minor]) {
  return (major === 24 && minor >= 16) || (major === 26 && minor >= 1) || major > 26
}

function bundledNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(
      `node-${process.platform}-${process.arch}/package.json`,
    )
    const path = manifest.replace(/package\.json$/, 'bin/node')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

// Compares only the files, with the list that tools/build.mjs wrote.
function isBuiltOfSources() {
  const list = new URL('../dist/sources.json', import.meta.url)
  if (!existsSync(list)) return false
  const root = fileURLToPath(new URL('../', import.meta.url))
  let states
  try {
    states = Object.entries(JSON.parse(readFileSync(list, 'utf8')))
  } catch {
    return false
  }
  return states.every(([path, [size, mtimeMs]]) => {
    const now = statSync(root + path, { throwIfNoEntry: false })
    return now !== undefined && now.size === size && now.mtimeMs === mtimeMs
  })
}

// A flag set by the operator replaces ours of the same name.
function lacksFlags() {
  const given = new Set(process.execArgv.map((flag) => flag.split('=')[0]))
  return FLAGS.some((flag) => !given.has(flag.split('=')[0]))
}

// Starts the program again with the flags, within the same process if the system supports that.
function startAgain() {
  const args = [...FLAGS, ...process.execArgv, ...process.argv.slice(1)]
  if (process.execve) process.execve(process.execPath, [process.execPath, ...args])
  else runWith(process.execPath, args)
}

function runWith(node, args = [...(isService ? FLAGS : []), ...process.argv.slice(1)]) {
  // Through the channel the child notices when this process is gone, however it ended.
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code ?? 1)
  })
}

if (!newEnough(process.versions.node.split('.').map(Number))) {
  const node = bundledNode()
  if (node) runWith(node)
  else {
    console.error(
      `sluice needs Node.js 24.16 or newer (or 26.1 or newer); this is ${process.version} at ${process.execPath}.\n` +
        'On Linux "npm ci" brings a fitting one along unless optional dependencies are left out.',
    )
    process.exit(1)
  }
} else if (isService && lacksFlags()) startAgain()
else {
  // Exits together with the process that started it, because that process cannot forward the signal by which
  // it is killed.
  process.on('disconnect', () => process.exit(1))
  process.channel?.unref()
  // Caches compiled code, with types stripped: later starts are faster and use less memory.
  const { directory } = nodeModule.enableCompileCache()
  // Worker threads find the cache through this variable.
  if (directory) process.env.NODE_COMPILE_CACHE ??= dirname(directory)
  // A package contains only the built files. A clone runs them as long as they match its sources.
  const source = new URL('../src/cli/main.ts', import.meta.url)
  const built = new URL('../dist/cli/main.js', import.meta.url)
  if (existsSync(source) && !isBuiltOfSources()) await import(source.href)
  else {
    await import('./source-positions.mjs')
    await import(built.href)
  }
}
