import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const FOLDER = import.meta.dirname
/** The address of the gateway to which the console's development server forwards API requests. */
const GATEWAY = `http://127.0.0.1:${process.env['PORT'] ?? 3000}`

/** Each file is in a folder named by the hash of its content, so that it can be cached forever. */
const NAMES = 'assets/[hash]/[name]'

/** Parts of forms, which the sign-in page does not use. */
const FORMS = modulesNamed(`
  budget budget-meter character-count confirm-dialog confirm-leave default-key-name differences edit-conflict
  filter-field form-actions form-dialog keep-focus key-state limit-form-values limit-inputs names-input new-key-field
  pager remaining-spend-text truncated-text unused-name use-key-changes use-merged-edit use-raise-budget-dialog
  use-revealed-key`)
/** Small parts of lists of calls and of their sums, which the sign-in page does not use. */
const LISTS = modulesNamed(`
  cache-breaks cache-break-mark call-state failure-description figures no-calls sessions-button sorting text-filter
  use-groups use-last-page use-now use-tier-names`)

/**
 * Modules that several pages use are bundled in few files, because each file costs a round trip. Modules that
 * the sign-in page does not need are in files of their own, however many pages use them.
 */
const GROUPS = [
  {
    name: 'common',
    minShareCount: 8,
    priority: 2,
    test: (path: string) => !FORMS.test(path) && !LISTS.test(path),
  },
  { name: 'forms', test: FORMS, priority: 1 },
  { name: 'lists', test: LISTS, priority: 1 },
]

/** Matches the paths of modules with these names. */
function modulesNamed(names: string): RegExp {
  return new RegExp(`/(?:${names.trim().split(/\s+/).join('|')})\\.tsx?$`)
}

export default defineConfig({
  root: FOLDER,
  // Files refer to each other by relative paths; in the page, the gateway puts its base path before them.
  base: './',
  publicDir: false,
  plugins: [react(), earlyTheme()],
  // The gateway inserts a new nonce into each response.
  html: { cspNonce: '{{nonce}}' },
  build: {
    outDir: 'built',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Source maps are built for debugging, but the gateway does not serve them. They contain names of files
    // and lines without the source text, which would double the size of the package.
    sourcemap: 'hidden',
    rolldownOptions: {
      output: {
        sourcemapExcludeSources: true,
        entryFileNames: `${NAMES}.js`,
        chunkFileNames: `${NAMES}.js`,
        assetFileNames: `${NAMES}[extname]`,
        codeSplitting: { groups: GROUPS },
      },
    },
  },
  server: { proxy: { '/api': GATEWAY, '/v1': GATEWAY, '/healthz': GATEWAY } },
})

/**
 * Adds the script that sets the theme before the first paint. It is a separate file, because the content
 * security policy forbids scripts within the page.
 */
function earlyTheme(): Plugin {
  const source = readFileSync(join(FOLDER, 'app/early-theme.js'), 'utf8')
  const hash = createHash('sha256').update(source).digest('base64url').slice(0, 8)
  const fileName = `assets/${hash}/early-theme.js`
  return {
    name: 'early-theme',
    buildStart() {
      if (this.environment.mode === 'build') this.emitFile({ type: 'asset', fileName, source })
    },
    transformIndexHtml: (_, { server }) => [
      {
        tag: 'script',
        attrs: { src: server ? '/app/early-theme.js' : `./${fileName}` },
        injectTo: 'head-prepend',
      },
    ],
  }
}
