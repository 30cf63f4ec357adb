import type { Texts } from '../../locales/use-texts.tsx'

/**
 * Labels of the fields that the dialog for conflicting changes or an error may name. Keys are left out,
 * because they are never shown.
 */
export function channelLabels({ channels, advanced }: Texts) {
  return {
    name: channels.name,
    type: channels.provider,
    protocol: channels.protocol,
    baseUrl: channels.baseUrl,
    other: `${advanced.apiVersion}, ${advanced.region}, ${advanced.location}`,
    project: advanced.project,
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
    protocols: advanced.protocols,
  }
}
