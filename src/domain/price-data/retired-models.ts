import type { ModelRetirement } from '../model-retirement.ts'
import type { Channel } from '../records/channel.ts'
import type { DataSource } from './vendor-service.ts'

/** Models that a vendor shuts down on the same day (UTC, `2026-10-23`). */
interface Retirement {
  readonly on: string
  readonly models: RegExp
}

/** Shutdown dates of a vendor's models. */
interface VendorRetirements extends DataSource {
  /** Matches the hosts of the vendor's own service. Resellers and clouds have other dates. */
  readonly hosts: RegExp
  readonly models: readonly Retirement[]
}

/**
 * Shutdown dates that the vendors published, by the vendor's id in the built-in prices, which still contain
 * retired models. A name that the vendor redirects to another model counts as retired, because that model has
 * another price.
 */
export const RETIREMENTS: ReadonlyMap<string, VendorRetirements> = new Map([
  [
    'openai',
    {
      hosts: /(?:^|\.)api\.openai\.com$/,
      source: 'developers.openai.com/api/docs/deprecations',
      date: '2026-11-21',
      models: [
        { on: '2024-01-04', models: /^(?:ada|babbage|curie|davinci|text-(?!embedding-(?:3|ada-002)).*)$/ },
        {
          on: '2025-06-06',
          models: /^gpt-(?:3\.5(?:-turbo)?-(?:0301|0613|16k.*)|4-0314|4-32k.*|4.*-vision-preview)$/,
        },
        { on: '2025-07-28', models: /^(?:gpt-4\.5-preview|o1-preview)/ },
        { on: '2025-10-27', models: /^o1-mini/ },
        { on: '2026-02-17', models: /^(?:chatgpt-4o-latest|codex-mini.*)$/ },
        { on: '2026-03-26', models: /^gpt-4-(?:turbo-preview|turbo-0125-preview|0125-preview)$/ },
        { on: '2026-05-12', models: /^dall-e-[23]$/ },
        {
          on: '2026-07-23',
          models:
            /^(?:computer-use.*|gpt-4o.*-(?:audio|realtime|search)-preview.*|gpt-5(?:\.1)?-chat-latest)$/,
        },
        { on: '2026-07-23', models: /^gpt-(?:audio|realtime)-mini-2025-10-06$/ },
        { on: '2026-07-23', models: /^(?:gpt-5(?:\.[12])?-codex.*|o[34].*-deep-research.*)$/ },
        { on: '2026-08-10', models: /^gpt-5\.[23]-chat-latest$/ },
        { on: '2026-09-28', models: /^gpt-3\.5-turbo-(?:1106|instruct.*)$/ },
        { on: '2026-10-23', models: /^(?:gpt-3\.5-turbo(?:-0125)?|gpt-4|gpt-4-0613|gpt-4-1106-preview)$/ },
        { on: '2026-10-23', models: /^(?:gpt-4-turbo(?:-2024-04-09)?|gpt-4o-2024-05-13|gpt-4\.1-nano.*)$/ },
        { on: '2026-10-23', models: /^(?:o1|o1-pro|o3-mini|o4-mini)(?:-\d{4}-\d\d-\d\d)?$/ },
        { on: '2026-10-23', models: /^gpt-image-1$/ },
        {
          on: '2026-12-01',
          models: /^(?:gpt-image-1-mini|gpt-image-1\.5(?:-\d{4}-\d\d-\d\d)?|chatgpt-image-latest)$/,
        },
        { on: '2026-12-11', models: /^(?:gpt-5(?:-mini|-nano|-pro)?|o3(?:-pro)?)(?:-\d{4}-\d\d-\d\d)?$/ },
        { on: '2027-01-14', models: /^gpt-4(?:o|\.1)(?:-mini)?(?:-\d{4}-\d\d-\d\d)?$/ },
        { on: '2027-04-01', models: /^gpt-5\.(?:3-codex|1.*|4-nano.*)$/ },
      ],
    },
  ],
  [
    'anthropic',
    {
      hosts: /^api\.anthropic\.com$/,
      source: 'platform.claude.com/docs/en/about-claude/model-deprecations',
      date: '2026-11-21',
      models: [
        { on: '2025-07-21', models: /^claude-(?:v?[12]|instant|3-sonnet)/ },
        { on: '2025-10-28', models: /^claude-3-5-sonnet/ },
        { on: '2026-01-05', models: /^claude-3-opus/ },
        { on: '2026-02-19', models: /^claude-3-(?:7-sonnet|5-haiku)/ },
        { on: '2026-04-19', models: /^claude-3-haiku/ },
        { on: '2026-06-15', models: /^claude-(?:opus|sonnet)-4(?:-0|-20250514)?$/ },
        { on: '2026-08-05', models: /^claude-opus-4-1/ },
        { on: '2026-11-30', models: /^claude-sonnet-4-5/ },
      ],
    },
  ],
  [
    'google',
    {
      hosts: /^generativelanguage\.googleapis\.com$/,
      source: 'ai.google.dev/gemini-api/docs/deprecations',
      date: '2026-11-21',
      models: [
        { on: '2025-09-24', models: /^(?:gemini-1\.|gemini-pro|gemini-flash-1\.)/ },
        { on: '2025-12-02', models: /^gemini-2\.5-(?:pro|flash)-preview(?:-\d\d-\d\d)?(?::thinking)?$/ },
        { on: '2026-03-09', models: /^gemini-3-pro-preview$/ },
        { on: '2026-06-01', models: /^gemini-2\.0-/ },
        { on: '2026-12-01', models: /^gemini-2\.5-(?:pro|flash)$/ },
      ],
    },
  ],
  [
    'x-ai',
    {
      hosts: /(?:^|\.)api\.x\.ai$/,
      source: 'docs.x.ai/docs/models',
      date: '2026-11-21',
      models: [
        { on: '2025-09-15', models: /^grok-2/ },
        {
          on: '2026-05-15',
          models: /^(?:grok-3|grok-4(?:-1)?-fast|grok-4(?:-0709|-latest)?$|grok-code-fast)/,
        },
      ],
    },
  ],
  [
    'mistral',
    {
      hosts: /^api\.mistral\.ai$/,
      source: 'docs.mistral.ai/getting-started/models',
      date: '2026-11-21',
      models: [
        { on: '2025-03-30', models: /^(?:mistral-tiny|(?:open-)?mi[sx]tral-(?:7b|8x7b|8x22b).*)$/ },
        { on: '2025-06-16', models: /^mistral-medium-2312$/ },
        { on: '2025-09-30', models: /^mistral-saba/ },
      ],
    },
  ],
  [
    'groq',
    {
      hosts: /^api\.groq\.com$/,
      source: 'console.groq.com/docs/deprecations',
      date: '2026-11-21',
      models: [
        {
          on: '2025-01-24',
          models: /^(?:llama2-70b.*|gemma-7b-it|llama3-groq-.*|llama-3\.1-(?:70b|405b)-.*)$/,
        },
        { on: '2025-03-20', models: /^mixtral-8x7b-32768$/ },
        { on: '2025-04-14', models: /^llama-3\.(?:2-.*-preview|3-70b-specdec)$/ },
        { on: '2025-07-30', models: /^(?:mistral-saba-24b|llama-guard-3-8b)$/ },
        { on: '2025-08-30', models: /^llama3-(?:8b|70b)-8192$/ },
        {
          on: '2025-10-10',
          models: /^(?:gemma2-9b-it|deepseek-r1-distill-llama-70b|moonshotai\/kimi-k2-instruct)$/,
        },
        { on: '2026-08-16', models: /^(?:llama-3\.3-70b-versatile|llama-3\.1-8b-instant)$/ },
      ],
    },
  ],
])

/** The day on which a vendor shuts a model down; undefined if it announced none. */
export function retirementOf(vendor: string, model: string): string | undefined {
  return RETIREMENTS.get(vendor)?.models.find(({ models }) => models.test(model))?.on
}

/** Whether a vendor has shut a model down by `now`. */
export function isRetired(vendor: string, model: string, now: Date): boolean {
  const today = now.toISOString().slice(0, 10)
  return RETIREMENTS.get(vendor)?.models.some(({ on, models }) => on <= today && models.test(model)) ?? false
}

/**
 * The shutdown that the vendor at the channel's address announced for one of its models; undefined if there
 * is none.
 */
export function announcedRetirement(
  { provider, base_url: baseUrl }: Pick<Channel, 'provider' | 'base_url'>,
  upstreamModel: string,
): ModelRetirement | undefined {
  if (provider !== 'generic') return undefined
  const host = URL.parse(baseUrl)?.hostname ?? ''
  const vendor = [...RETIREMENTS.values()].find(({ hosts }) => hosts.test(host))
  const found = vendor?.models.find(({ models }) => models.test(upstreamModel))
  return vendor && found && { on: found.on, knownMs: Date.parse(vendor.date) }
}
