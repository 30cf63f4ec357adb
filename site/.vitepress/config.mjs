import process from 'node:process'
import { defineConfig } from 'vitepress'
import { referencePages } from '../reference.mjs'

/** Where the sources are shown; set by the workflow that publishes the site. */
const repository = process.env.SITE_REPOSITORY ?? 'https://github.com/OWNER/sluice'

const page = (text, link) => ({ text, link })

export default defineConfig({
  title: 'Sluice',
  description: 'A gateway in front of language models: exact accounts, faithful conversion, low cost',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'pages',
  outDir: 'built',
  cleanUrls: true,
  lastUpdated: false,
  metaChunk: true,
  // Themes of code with enough contrast, and regions that scroll can be reached with the keyboard.
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(markdown) {
      markdown.renderer.rules.table_open = () =>
        '<div class="table" tabindex="0" role="group" aria-label="Table"><table tabindex="-1">\n'
      markdown.renderer.rules.table_close = () => '</table></div>\n'
      // A header without text is no header.
      markdown.core.ruler.push('empty_headers', ({ tokens }) => {
        for (const [i, token] of tokens.entries())
          if (token.type === 'th_open' && tokens[i + 1]?.content === '') token.tag = tokens[i + 2].tag = 'td'
      })
    },
  },
  // Pages are generated: their sources are elsewhere.
  transformPageData: ({ frontmatter }) => ({ filePath: frontmatter.source }),
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3], label: 'On this page' },
    nav: [
      page('Documentation', '/overview'),
      page('API', '/api'),
      page('Comparison', '/comparison'),
      page('Changelog', '/changelog'),
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          page('By task', '/overview'),
          page('Configuration', '/configuration'),
          page('Console', '/console'),
          page('What providers bill', '/price-pages'),
          page('Comparison', '/comparison'),
          page('Changelog', '/changelog'),
        ],
      },
      {
        text: 'Tutorials',
        items: [
          page('Claude Code', '/tutorials/claude-code'),
          page('Codex', '/tutorials/codex'),
          page('gemini-cli', '/tutorials/gemini-cli'),
          page('A budget for each team', '/tutorials/team-budgets'),
          page('A server of tools', '/tutorials/mcp-server'),
          page('Failover', '/tutorials/failover'),
          page('Prometheus and Grafana', '/tutorials/prometheus-grafana'),
          page('Behind a TLS proxy', '/tutorials/behind-tls-proxy'),
          page('Upgrading', '/tutorials/upgrading'),
        ],
      },
      {
        text: 'Operate',
        items: [
          page('Deployment', '/deployment'),
          page('Operations', '/operations'),
          page('Administration over HTTP', '/administration'),
          page('Scaling', '/scaling'),
          page('Databases', '/databases'),
          page('Moving from another gateway', '/moving'),
          page('Limits that agents respect', '/guides/limits-that-agents-respect'),
          page('Moderate both ways', '/guides/moderate-both-ways'),
          page('Retire a model', '/guides/retire-a-model'),
          page('Calls in Langfuse', '/guides/telemetry-to-langfuse'),
          page('Calls in Grafana', '/guides/telemetry-to-grafana'),
          page('Performance', '/performance'),
          page('Threat model', '/security'),
          page('Matching of guards', '/matching'),
        ],
      },
      {
        text: 'API',
        items: [
          page('The API', '/api'),
          page('The ledger', '/ledger'),
          {
            text: 'OpenAPI reference',
            items: referencePages().map(({ title, link }) => page(title, link)),
          },
        ],
      },
      {
        text: 'Build',
        items: [
          page('Architecture', '/architecture'),
          page('Decisions', '/decisions/overview'),
          page('Recipes', '/recipes/add-an-endpoint'),
          page('Style', '/style'),
          page('Dependencies', '/dependencies'),
          page('Glossary', '/glossary'),
          page('Security tests', '/security-tests'),
        ],
      },
    ],
    editLink: {
      text: 'Source of this page',
      pattern: `${repository}/blob/main/:path`,
    },
    docFooter: { prev: false, next: false },
  },
})
