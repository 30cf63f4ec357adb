import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { SETTING_REGIONS, SETTINGS } from '../../../src/domain/options.ts'
import { shellQuery } from '../../api/account.ts'
import { ApiError } from '../../api/api-error.ts'
import { type GatewayOption, optionsQuery, setOption } from '../../api/options.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { EditConflict } from '../../components/edit-conflict.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { LeaveGuard } from '../../components/leave-guard.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Refusal } from '../../components/refusal.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { AlertsSection } from './alerts-section.tsx'
import { GroupRows } from './group-rows.tsx'
import { changedGroups, groupsIn } from './groups.ts'
import { SettingInput } from './setting-input.tsx'

/** The options of the gateway; those in gateway.yaml are locked. */
export function SettingsPage() {
  const { profile } = useSignedIn()
  return (
    <QueryResult query={useQuery(optionsQuery(profile.id))} rows={10}>
      {(options) => (
        <>
          <SettingsForm options={options} />
          <AlertsSection />
        </>
      )}
    </QueryResult>
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
  // Changes are based on the initial values of the form, not on those that the page loads in the meantime.
  const [basis, setBasis] = useState(options)
  const [present, setPresent] = useState<GatewayOption>()
  const changes = [
    ...[...typed].filter(([key, value]) => stored.get(key) !== value),
    ...changedGroups(groups, groupsIn(basis)),
  ]
  const saving = useAction(async (versions: readonly GatewayOption[]) => {
    setRefused(undefined)
    for (const [key, value] of changes) {
      try {
        await setOption(key, value, versions.find((option) => option.key === key)?.version)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.code === 'changed_meanwhile') setPresent(error.present as GatewayOption)
        else if (error.status === 400) setRefused({ key, message: error.message })
        else throw error
        return
      }
    }
    await begin()
    showNotice(common.saved)
  })
  /** Restarts the form with the stored values. */
  const begin = async (): Promise<void> => {
    const now = await client.fetchQuery({ ...optionsQuery(profile.id), staleTime: 0 })
    await client.invalidateQueries({ queryKey: [profile.id] })
    await client.invalidateQueries({ queryKey: shellQuery.queryKey })
    setTyped(new Map())
    setBasis(now)
    setGroups(groupsIn(now))
  }
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void saving.run(basis)
      }}
    >
      <PageHead title={settings.title} />
      {SETTING_REGIONS.map((region) => (
        <FormSection key={region} title={settings[region]}>
          {SETTINGS.filter((field) => field.region === region).map((field) => (
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
      <LeaveGuard isChanged={changes.length > 0} />
      <EditConflict
        differences={
          present && [
            {
              label: labelOf(settings, present.key),
              mine: new Map(changes).get(present.key) ?? '',
              theirs: present.value,
            },
          ]
        }
        onTake={() => {
          setPresent(undefined)
          void begin()
        }}
        onOverwrite={() => {
          const versions = basis.map((option) => (option.key === present?.key ? present : option))
          setPresent(undefined)
          setBasis(versions)
          void saving.run(versions)
        }}
        onClose={() => setPresent(undefined)}
      />
    </form>
  )
}

function labelOf(settings: Texts['settings'], key: string): string {
  const options: Readonly<Record<string, readonly string[]>> = settings.options
  return options[key]?.[0] ?? settings.groups
}
