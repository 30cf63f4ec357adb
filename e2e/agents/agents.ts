/** A task for an agent, and the gateway's address. */
export interface Task {
  /** The gateway's URL, without a path. */
  readonly url: string
  readonly key: string
  readonly model: string
  readonly prompt: string
  /**
   * Whether it is the first turn of a conversation with several or a later one; absent in a conversation with
   * one.
   */
  readonly turn?: 'first' | 'later'
}

/** An agent program, and how to run it unattended. */
export interface Agent {
  readonly name: string
  /** The package, and the name of its command in node_modules/.bin. */
  readonly packageName: string
  readonly command: string
  /** The dialect that the agent speaks. */
  readonly dialect: 'messages' | 'chat' | 'responses' | 'gemini'
  /** Set if all of the agent's calls are turns of WebSockets. */
  readonly transport?: 'websocket'
  /** Whether the agent only has a shell and patches for files, which its task then requests. */
  readonly patches?: true
  args(task: Task): readonly string[]
  env(task: Task): Readonly<Record<string, string>>
  /** The files of the agent's home folder. */
  files(task: Task): ReadonlyMap<string, string>
}

export const CLAUDE_CODE: Agent = {
  name: 'Claude Code',
  packageName: '@anthropic-ai/claude-code',
  command: 'claude',
  dialect: 'messages',
  args: ({ prompt, model, turn }) => [
    '-p',
    prompt,
    ...(turn === 'later' ? ['--continue'] : []),
    '--model',
    model,
    '--allowedTools',
    'Read',
  ],
  env: ({ url, key, model }) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_ERROR_REPORTING: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
  files: () => new Map(),
}

export const QWEN_CODE: Agent = {
  name: 'qwen-code',
  packageName: '@qwen-code/qwen-code',
  command: 'qwen',
  dialect: 'chat',
  args: ({ prompt, model }) => ['--auth-type', 'openai', '--model', model, '--approval-mode', 'yolo', prompt],
  env: ({ url, key, model }) => ({
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: model,
    QWEN_TELEMETRY_ENABLED: 'false',
    QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
  }),
  files: () =>
    new Map([
      [
        '.qwen/settings.json',
        JSON.stringify({
          general: { enableAutoUpdate: false },
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
        }),
      ],
    ]),
}

export const OPENCODE: Agent = {
  name: 'opencode',
  packageName: 'opencode-ai',
  command: 'opencode',
  dialect: 'chat',
  args: ({ prompt, model }) => ['run', '--pure', '--model', `sluice/${model}`, prompt],
  env: () => ({
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_SHARE: '1',
  }),
  files: ({ url, key, model }) =>
    new Map([
      [
        '.config/opencode/opencode.json',
        JSON.stringify({
          share: 'disabled',
          autoupdate: false,
          small_model: `sluice/${model}`,
          permission: { external_directory: 'allow' },
          provider: {
            sluice: {
              npm: '@ai-sdk/openai-compatible',
              name: 'Sluice',
              options: { baseURL: `${url}/v1`, apiKey: key },
              models: { [model]: { name: model } },
            },
          },
        }),
      ],
    ]),
}

export const PI: Agent = {
  name: 'pi',
  packageName: '@mariozechner/pi-coding-agent',
  command: 'pi',
  dialect: 'chat',
  args: ({ prompt, model }) => ['--print', '--no-session', '--model', `sluice/${model}`, prompt],
  // Offline mode: otherwise pi checks for updates of itself and downloads search programs.
  env: () => ({ PI_OFFLINE: '1', PI_TELEMETRY: '0' }),
  files: ({ url, key, model }) =>
    new Map([
      [
        '.pi/agent/models.json',
        JSON.stringify({
          providers: {
            sluice: {
              baseUrl: `${url}/v1`,
              api: 'openai-completions',
              apiKey: key,
              models: [{ id: model }],
            },
          },
        }),
      ],
    ]),
}

export const CODEX: Agent = {
  name: 'Codex',
  packageName: '@openai/codex',
  command: 'codex',
  dialect: 'responses',
  patches: true,
  args: ({ prompt, model, turn }) => [
    'exec',
    '--skip-git-repo-check',
    ...(turn === undefined ? ['--ephemeral'] : []),
    '--sandbox',
    'danger-full-access',
    '--model',
    model,
    ...(turn === 'later' ? ['resume', '--last'] : []),
    prompt,
  ],
  env: ({ key }) => ({ SLUICE_KEY: key }),
  files: ({ url }) =>
    new Map([
      [
        '.codex/config.toml',
        [
          'model_provider = "sluice"',
          'check_for_update_on_startup = false',
          '[analytics]',
          'enabled = false',
          '[model_providers.sluice]',
          'name = "Sluice"',
          `base_url = "${url}/v1"`,
          'env_key = "SLUICE_KEY"',
          'wire_api = "responses"',
          '',
        ].join('\n'),
      ],
    ]),
}

/** Codex with a WebSocket to the gateway for all its requests. */
export const CODEX_SOCKETS: Agent = {
  ...CODEX,
  name: 'Codex over WebSocket',
  transport: 'websocket',
  files: (task) =>
    new Map([...CODEX.files(task)].map(([path, text]) => [path, `${text}supports_websockets = true\n`])),
}

export const GEMINI_CLI: Agent = {
  name: 'gemini-cli',
  packageName: '@google/gemini-cli',
  command: 'gemini',
  dialect: 'gemini',
  args: ({ prompt, model }) => ['--model', model, '--yolo', '--skip-trust', '--prompt', prompt],
  env: ({ url, key }) => ({
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_API_KEY: key,
    GEMINI_CLI_NO_RELAUNCH: 'true',
    GEMINI_TELEMETRY_ENABLED: 'false',
  }),
  files: () =>
    new Map([
      [
        '.gemini/settings.json',
        JSON.stringify({
          general: { enableAutoUpdate: false, disableAutoUpdate: true },
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
          security: { auth: { selectedType: 'gemini-api-key' } },
        }),
      ],
    ]),
}

/** The path of an agent's model calls. */
export function pathOf({ dialect }: Agent, model: string): string {
  switch (dialect) {
    case 'chat':
      return '/v1/chat/completions'
    case 'messages':
      return '/v1/messages'
    case 'responses':
      return '/v1/responses'
    case 'gemini':
      return `/v1beta/models/${model}:streamGenerateContent`
  }
}
