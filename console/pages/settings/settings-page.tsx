import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { SETTINGS_SECTIONS, SETTINGS } from '../../../src/domain/options.ts'
import {
  type DeclaredSettings,
  declaredSettingsQuery,
  type GatewayOption,
  optionsQuery,
} from '../../api/options.ts'
import { differencesOf } from '../../components/differences.ts'
import { EditConflict } from '../../components/edit-conflict.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { AlertsSection } from './alerts-section.tsx'
import { AnswerCacheInputs } from './answer-cache-inputs.tsx'
import { lineOfDeclaredEntry } from './line-of-declared-entry.ts'
import { FileSection } from './file-section.tsx'
import { OPTION_SETTINGS, RATE_LIMIT_SETTINGS, SIGN_IN_SETTINGS } from './file-settings.ts'
import { ModelSettingRows } from './model-setting-rows.tsx'
import { SectionIndex } from './section-index.tsx'
import { settingsSections } from './settings-sections.ts'
import { SettingInput } from './setting-input.tsx'
import classes from './settings-page.module.css'
import { TelemetrySection } from './telemetry-section.tsx'
import { useSettingChanges } from './use-setting-changes.ts'

const FORM = 'settings'
/** Key of the option of the answer cache. */
const ANSWER_CACHE = 'cache'

/** The options of the gateway. Those in gateway.yaml cannot be changed here. */
export function SettingsPage() {
  const { profile } = useSignedInAccount()
  const declared = useQuery(declaredSettingsQuery(profile.id))
  return (
    <QueryResult query={useQuery(optionsQuery(profile.id))} rows={10}>
      {(options) => (
        <QueryResult query={declared} rows={10}>
          {(file) => <Settings options={options} declared={file} />}
        </QueryResult>
      )}
    </QueryResult>
  )
}

interface SettingsProps {
  readonly options: readonly GatewayOption[]
  readonly declared: DeclaredSettings
}

function Settings({ options, declared }: SettingsProps) {
  const { audit, imports, settings } = useTexts()
  const form = useSettingChanges(options)
  const { changes, present } = form
  return (
    <>
      <form
        id={FORM}
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          form.save()
        }}
      >
        <PageHead title={settings.title}>
          <Link to="/import">{imports.link}</Link>
        </PageHead>
        <SectionIndex sections={settingsSections(settings)} />
        <OptionSections options={options} declared={declared} form={form} />
        <OptionsByName key={form.generation} options={options} declared={declared} form={form} />
      </form>
      <AlertsSection />
      <FileSection
        id="rate-limits"
        title={settings.rateLimits}
        text={settings.rateLimitsHint}
        section="rate_limits"
        rows={RATE_LIMIT_SETTINGS}
        hints={settings.rateLimitHints}
        declared={declared}
      />
      <FileSection
        id="sign-in"
        title={settings.signIn}
        text={settings.signInHint}
        section="login"
        rows={SIGN_IN_SETTINGS}
        hints={settings.signInHints}
        declared={declared}
      />
      <FileSection
        id="file"
        title={settings.fileOptions}
        text={settings.fileOptionsHint}
        section="options"
        rows={OPTION_SETTINGS}
        hints={settings.fileOptionHints}
        declared={declared}
      />
      <TelemetrySection />
      <div className={classes['bar']}>
        <Button type="submit" form={FORM} loading={form.isSaving} disabled={changes.length === 0}>
          {settings.save}
        </Button>
        <Button variant="default" disabled={changes.length === 0} onClick={() => form.discard()}>
          {settings.discard}
        </Button>
        <span role="status">{changes.length > 0 && settings.unsaved(changes.length)}</span>
        <RefusalMessage error={form.error ?? refusalOf(form.refused)} />
      </div>
      <ConfirmLeave isChanged={changes.length > 0} />
      <EditConflict
        differences={
          present &&
          differencesOf(
            { value: labelOf(settings, present.key) },
            { value: new Map(changes).get(present.key) ?? '' },
            { value: present.value },
            undefined,
            { value: { ...settings.values, true: audit.words.true, false: audit.words.false } },
          )
        }
        onTake={() => form.take()}
        onOverwrite={() => form.overwrite()}
        onClose={form.leave}
      />
    </>
  )
}

type Sections = SettingsProps & { readonly form: ReturnType<typeof useSettingChanges> }

function OptionSections({ options, declared, form: { typed, type, refused } }: Sections) {
  const { settings } = useTexts()
  return SETTINGS_SECTIONS.map((region) => (
    <FormSection key={region} id={region} title={settings[region]}>
      {SETTINGS.filter((field) => field.region === region).map((field) => (
        <SettingInput
          key={field.key}
          field={field}
          option={options.find(({ key }) => key === field.key)}
          source={settings.fromLine(declared.file, lineOfDeclaredEntry(declared, 'options', field.name) ?? 0)}
          typed={typed.get(field.key)}
          error={refused?.key === field.key ? refused.message : undefined}
          onChange={(value) => type(field.key, value)}
        />
      ))}
    </FormSection>
  ))
}

/** The options that have a value for each model, and the way to the groups. */
function OptionsByName({ options, declared, form: { typed, type, refused } }: Sections) {
  const { groups, settings } = useTexts()
  const valueOf = (wanted: string, none = '{}'): string =>
    typed.get(wanted) ?? options.find(({ key }) => key === wanted)?.value ?? none
  const isCacheDeclared = options.some(({ key, managed }) => key === ANSWER_CACHE && managed)
  return (
    <>
      <FormSection id="groups" title={settings.groups} text={settings.groupHint}>
        <Link to="/groups">{groups.title}</Link>
      </FormSection>
      <FormSection id="fallback" title={settings.fallback} text={settings.fallbackHint}>
        <ModelSettingRows
          field="fallback"
          value={valueOf('ModelFallback')}
          declared={declared}
          onChange={(value) => type('ModelFallback', value)}
        />
        <ModelSettingRows
          field="context_fallback"
          value={valueOf('ModelContextFallback')}
          declared={declared}
          onChange={(value) => type('ModelContextFallback', value)}
        />
        <ModelSettingRows
          field="content_fallback"
          value={valueOf('ModelContentFallback')}
          declared={declared}
          onChange={(value) => type('ModelContentFallback', value)}
        />
        <ModelSettingRows
          field="successor"
          value={valueOf('ModelSuccessor')}
          declared={declared}
          onChange={(value) => type('ModelSuccessor', value)}
        />
        <ModelSettingRows
          field="balance"
          value={valueOf('ModelBalance')}
          declared={declared}
          onChange={(value) => type('ModelBalance', value)}
        />
      </FormSection>
      <FormSection id="answer-cache" title={settings.answerCache.title} text={settings.answerCache.hint}>
        <AnswerCacheInputs
          value={valueOf(ANSWER_CACHE, '')}
          source={
            isCacheDeclared
              ? settings.fromLine(declared.file, lineOfDeclaredEntry(declared, 'options', ANSWER_CACHE) ?? 0)
              : undefined
          }
          error={refused?.key === ANSWER_CACHE ? refused.message : undefined}
          onChange={(value) => type(ANSWER_CACHE, value)}
        />
        <ModelSettingRows
          field="cache"
          value={valueOf('ModelCache')}
          declared={declared}
          onChange={(value) => type('ModelCache', value)}
        />
      </FormSection>
    </>
  )
}

/**
 * The error message for options that have no input of their own; `refused` is the option that the gateway
 * refused.
 */
function refusalOf(refused: { readonly key: string; readonly message: string } | undefined) {
  const hasInput = refused?.key === ANSWER_CACHE || SETTINGS.some(({ key }) => key === refused?.key)
  return refused && !hasInput ? new Error(refused.message) : undefined
}

function labelOf(settings: Texts['settings'], key: string): string {
  const options: Readonly<Record<string, readonly string[]>> = settings.options
  const byName: Readonly<Record<string, string>> = {
    [ANSWER_CACHE]: settings.answerCache.title,
    ModelFallback: settings.modelSettings.fallback,
    ModelContextFallback: settings.modelSettings.context_fallback,
    ModelContentFallback: settings.modelSettings.content_fallback,
    ModelSuccessor: settings.modelSettings.successor,
    ModelBalance: settings.modelSettings.balance,
    ModelCache: settings.modelSettings.cache,
  }
  return options[key]?.[0] ?? byName[key] ?? key
}
