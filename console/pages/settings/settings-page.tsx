import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { statusQuery } from '../../api/account.ts'
import { ApiError } from '../../api/api-error.ts'
import { type GatewayOption, optionsQuery, setOption } from '../../api/options.ts'
import { AnswerOf } from '../../parts/answer-of.tsx'
import { FormSection } from '../../parts/form-section.tsx'
import { say } from '../../parts/notify.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Refusal } from '../../parts/refusal.tsx'
import { useSignedIn } from '../../parts/session.tsx'
import { useAction } from '../../parts/use-action.ts'
import { useTexts } from '../../texts/use-texts.tsx'
import { GroupRows } from './group-rows.tsx'
import { changedGroups, groupsIn } from './groups.ts'
import { SettingInput } from './setting-input.tsx'
import { SETTINGS } from './setting-fields.ts'

/** The options of the gateway; those of gateway.yaml are locked. */
export function SettingsPage() {
  const { profile } = useSignedIn()
  return (
    <AnswerOf query={useQuery(optionsQuery(profile.id))} rows={10}>
      {(options) => <SettingsForm options={options} />}
    </AnswerOf>
  )
}

function SettingsForm({ options }: { readonly options: readonly GatewayOption[] }) {
  const { settings, common } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const [typed, setTyped] = useState<ReadonlyMap<string, string>>(new Map())
  const [groups, setGroups] = useState(() => groupsIn(options))
  const [refused, setRefused] = useState<{ readonly key: string; readonly message: string }>()
  const stored = new Map(options.map(({ key, value }) => [key, value]))
  const changes = [
    ...[...typed].filter(([key, value]) => stored.get(key) !== value),
    ...changedGroups(groups, groupsIn(options)),
  ]
  const saving = useAction(async () => {
    setRefused(undefined)
    for (const [key, value] of changes) {
      try {
        await setOption(key, value)
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 400) throw error
        setRefused({ key, message: error.message })
        return
      }
    }
    await client.invalidateQueries({ queryKey: [profile.id] })
    await client.invalidateQueries({ queryKey: statusQuery.queryKey })
    setTyped(new Map())
    say(common.saved)
  })
  const regions = ['money', 'routing', 'retention'] as const
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void saving.run()
      }}
    >
      <PageHead title={settings.title} />
      {regions.map((region) => (
        <FormSection key={region} title={settings[region]}>
          {SETTINGS[region].map((field) => (
            <SettingInput
              key={field.key}
              field={field}
              option={options.find(({ key }) => key === field.key)}
              typed={typed.get(field.key)}
              error={refused?.key === field.key ? refused.message : undefined}
              onChange={(value) => setTyped(new Map(typed).set(field.key, value))}
            />
          ))}
        </FormSection>
      ))}
      <FormSection title={settings.groups} text={settings.groupHint}>
        <GroupRows groups={groups} onChange={setGroups} />
      </FormSection>
      <Refusal
        error={saving.error ?? (refused?.key.includes('Group') ? new Error(refused.message) : undefined)}
      />
      <Group gap="md">
        <Button type="submit" loading={saving.isRunning} disabled={changes.length === 0}>
          {settings.save}
        </Button>
        <span role="status">{changes.length > 0 && settings.unsaved(changes.length)}</span>
      </Group>
    </form>
  )
}
