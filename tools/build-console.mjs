// Builds the web console from console/ into console/built/. With --if-possible, as `npm ci` calls it, missing
// build tools or missing sources are not an error.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const configFile = join(root, 'console/vite.config.ts')
const needed = ['vite', '@vitejs/plugin-react', '@mantine/core', 'react', '@tanstack/react-router']
const isPossible =
  existsSync(configFile) && needed.every((name) => existsSync(join(root, 'node_modules', name)))

if (isPossible) {
  const { build } = await import('vite')
  await build({ configFile, logLevel: 'warn' })
} else {
  console.log('The web console is not built: its tools are not installed. The gateway works without it.')
  if (!process.argv.includes('--if-possible')) process.exit(1)
}
