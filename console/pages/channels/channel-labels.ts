import type { Words } from '../../components/differences.ts'
import type { Texts } from '../../locales/use-texts.tsx'
import type { ChannelFormValues } from './channel-form.ts'
import { OPENAI_COMPATIBLE_TYPE, PROVIDERS } from './providers.ts'

/** Labels of the fields that the dialog for conflicting changes or an error may name. */
export function channelLabels({
  channels,
  advanced,
}: Texts): Readonly<Record<keyof ChannelFormValues, string>> {
  return {
    name: channels.name,
    type: channels.provider,
    protocol: channels.protocol,
    baseUrl: channels.baseUrl,
    other: `${advanced.apiVersion}, ${advanced.region}, ${advanced.location}`,
    project: advanced.project,
    keys: channels.apiKeys,
    models: channels.models,
    groups: channels.groups,
    ...channels.settings,
    weight: channels.weight,
    mapping: advanced.mapping,
    headers: advanced.headers,
    overrides: advanced.overrides,
    proxy: advanced.proxy,
    probe: advanced.probe,
    testModel: advanced.testModel,
    serviceTier: advanced.serviceTier,
    systemPrompt: advanced.systemPrompt,
    repair: advanced.repair,
    protocols: advanced.protocols,
    settings: advanced.title,
  }
}

/** The words for the values of these fields that are chosen. */
export function channelWords({ channels }: Texts): Words<ChannelFormValues> {
  const providers = PROVIDERS.map(({ type, name }) => [String(type), name] as const)
  return {
    type: { ...Object.fromEntries(providers), [OPENAI_COMPATIBLE_TYPE]: channels.anyProvider },
    protocol: { '': channels.byProvider, ...channels.protocols },
    protocols: channels.protocols,
  }
}
