/** The form of an API key or token of one provider. */
export interface SecretForm {
  readonly provider: string
  /** Regular expression in the syntax of RE2. */
  readonly source: string
  /**
   * `exact`: no letter or digit may follow. `hex`: the prefix is also an ordinary word, so neither letters
   * and digits nor `-`, `_` and `/` may be before or after the key.
   */
  readonly border?: 'exact' | 'hex'
}

const W = '[A-Za-z0-9_-]'
const A = '[A-Za-z0-9]'
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

/**
 * Keys that can be recognized by the prefix that their provider chose for secret scanners. Taken from the
 * providers' own pages and from the lists of repository scanners, as of November 2026. If a provider does not
 * state the length, the shortest key seen is the minimum, and all following characters of the same kind
 * belong to the key.
 */
export const SECRET_FORMS: readonly SecretForm[] = [
  // Providers of models
  { provider: 'Anthropic', source: `sk-ant-[a-z0-9]{2,10}-${W}{20,}` },
  { provider: 'OpenAI', source: `sk-(?:proj|svcacct|admin|None|service)-${W}{20,}` },
  { provider: 'OpenAI, DeepSeek, Moonshot, Alibaba', source: `sk-${A}{20,}` },
  { provider: 'OpenRouter', source: 'sk-or-v1-[0-9a-f]{40,}' },
  { provider: 'LiteLLM, Langfuse', source: `(?:sk|pk)-lf-${UUID}` },
  { provider: 'Google', source: `AIza${W}{35}`, border: 'exact' },
  { provider: 'Google', source: `AQ\\.Ab${W}{30,}` },
  { provider: 'Groq', source: `gsk_${A}{40,}` },
  { provider: 'xAI', source: `xai-${A}{40,}` },
  { provider: 'Perplexity', source: `pplx-${A}{40,}` },
  { provider: 'Fireworks', source: `fw_${A}{22,}` },
  { provider: 'Together', source: `tgp_v1_${W}{40,}` },
  { provider: 'Hugging Face', source: `(?:hf_${A}{30,}|api_org_${A}{30,})` },
  { provider: 'Replicate', source: `r8_${A}{37,}` },
  { provider: 'NVIDIA', source: `nvapi-${W}{40,}` },
  { provider: 'Cerebras', source: 'csk-[a-z0-9]{40,}' },
  { provider: 'Pinecone', source: `pcsk_${A}{4,8}_${A}{40,}` },
  { provider: 'LangSmith', source: 'lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}' },
  { provider: 'Tavily', source: `tvly-(?:dev-|prod-)?${A}{28,}` },
  { provider: 'ElevenLabs', source: 'sk_[0-9a-f]{48}', border: 'exact' },
  { provider: 'Jina', source: `jina_${W}{50,}` },
  // Cloud providers
  { provider: 'Amazon', source: '(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}', border: 'exact' },
  { provider: 'Amazon Bedrock', source: `(?:ABSKQmVkcm9ja0FQSUtleS|bedrock-api-key-)[A-Za-z0-9+/=]{40,}` },
  { provider: 'Google OAuth', source: `(?:GOCSPX-${W}{28}|ya29\\.${W}{20,})` },
  { provider: 'Microsoft Azure', source: 'AccountKey=[A-Za-z0-9+/]{80,}={0,2}' },
  { provider: 'Microsoft Entra', source: '[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}', border: 'exact' },
  {
    provider: 'Microsoft Azure',
    source: `${A}{76}(?:AZEG|AZDO|APIM|ACDb|AzSe|ACRA)${A}{4,8}`,
    border: 'exact',
  },
  { provider: 'Alibaba Cloud', source: `LTAI${A}{16,24}`, border: 'exact' },
  { provider: 'Tencent Cloud', source: `AKID${A}{32}`, border: 'exact' },
  { provider: 'DigitalOcean', source: 'do[opr]_v1_[0-9a-f]{64}' },
  { provider: 'Heroku', source: `HRKU-AA${W}{50,}` },
  { provider: 'Fly.io', source: `(?:fo1_${W}{40,}|fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,3})` },
  { provider: 'Netlify', source: `nf[pcoub]_${A}{36}` },
  { provider: 'Cloudflare', source: 'v1\\.0-[0-9a-f]{24}-[0-9a-f]{140,}' },
  { provider: 'Render', source: `rnd_${A}{28,}` },
  { provider: 'Databricks', source: 'dapi[0-9a-f]{32}(?:-[0-9])?', border: 'exact' },
  { provider: 'Supabase', source: `(?:sbp_[0-9a-f]{40}|sb_secret_${W}{28,})` },
  { provider: 'PlanetScale', source: 'pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}' },
  // Code hosts and package registries
  { provider: 'GitHub', source: `gh[pousr]_${A}{36,}` },
  { provider: 'GitHub', source: `github_pat_${A}{22}_${A}{59}` },
  { provider: 'GitLab', source: `gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|ffct|wt)-${W}{20,}` },
  { provider: 'GitLab', source: `gloas-[0-9a-f]{64}` },
  { provider: 'Bitbucket, Jira', source: `(?:ATATT3|ATCTT3)[A-Za-z0-9_=-]{50,}` },
  { provider: 'Bitbucket', source: `ATBB${A}{32}`, border: 'exact' },
  { provider: 'npm', source: `npm_${A}{36}`, border: 'exact' },
  { provider: 'PyPI', source: `pypi-AgE[IN]${W}{50,}` },
  { provider: 'RubyGems', source: 'rubygems_[0-9a-f]{48}' },
  { provider: 'crates.io', source: `cio${A}{32}`, border: 'exact' },
  { provider: 'NuGet', source: 'oy2[a-z0-9]{43}', border: 'exact' },
  { provider: 'Docker', source: `dckr_(?:pat|oat)_${W}{27,}` },
  { provider: 'JFrog', source: `AKCp${A}{60,}` },
  { provider: 'Sourcegraph', source: 'sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}' },
  { provider: 'SonarQube', source: 'sq[upa]_[0-9a-f]{40}', border: 'exact' },
  { provider: 'Postman', source: 'PMAK-[0-9a-f]{24}-[0-9a-f]{34}' },
  // Chat and e-mail services
  { provider: 'Slack', source: `xox[abeoprs]-${A}[A-Za-z0-9-]{15,}` },
  { provider: 'Slack', source: `xapp-[0-9]-[A-Z0-9]+-[0-9]+-${A}{20,}` },
  { provider: 'Slack', source: 'hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{30,}' },
  { provider: 'Discord', source: `discord(?:app)?\\.com/api/webhooks/[0-9]{17,20}/${W}{60,}` },
  { provider: 'Discord', source: `[MNO]${W}{22,28}\\.${W}{6}\\.${W}{27,40}`, border: 'exact' },
  { provider: 'Telegram', source: `[0-9]{8,10}:AA${W}{33}`, border: 'exact' },
  { provider: 'SendGrid', source: `SG\\.${W}{22}\\.${W}{43}` },
  { provider: 'Mailgun', source: '(?:key|pubkey)-[0-9a-f]{32}', border: 'hex' },
  { provider: 'Mailchimp', source: '[0-9a-f]{32}-us[0-9]{1,2}', border: 'hex' },
  { provider: 'Brevo', source: `xkeysib-[0-9a-f]{64}-${A}{16}` },
  { provider: 'Resend', source: `re_${A}{8}_${A}{24}`, border: 'exact' },
  { provider: 'Twilio', source: 'SK[0-9a-f]{32}', border: 'exact' },
  // Payment services
  { provider: 'Stripe', source: `(?:sk|rk)_(?:live|test|prod)_${A}{16,}` },
  { provider: 'Stripe', source: 'whsec_[A-Za-z0-9+/=]{32,}' },
  { provider: 'Square', source: `(?:sq0(?:atp|csp|idp)-${W}{22,}|EAAA[A-Za-z0-9_-]{56,})` },
  { provider: 'Shopify', source: 'shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{32}' },
  { provider: 'Plaid', source: `access-(?:sandbox|development|production)-${UUID}` },
  { provider: 'Flutterwave', source: 'FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,32}-X' },
  { provider: 'Shippo', source: 'shippo_(?:live|test)_[0-9a-f]{40}' },
  { provider: 'EasyPost', source: `EZ[AT]K${A}{54}` },
  { provider: 'Razorpay', source: `rzp_(?:live|test)_${A}{14,}` },
  // Secret stores, infrastructure, monitoring
  { provider: 'HashiCorp Vault', source: `hv[sbr]\\.${W}{24,}` },
  { provider: 'HashiCorp Terraform', source: `${A}{14}\\.atlasv1\\.[A-Za-z0-9_=-]{60,}` },
  { provider: 'Pulumi', source: 'pul-[0-9a-f]{40}' },
  { provider: 'Doppler', source: `dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9_.-]{40,}` },
  { provider: '1Password', source: 'ops_eyJ[A-Za-z0-9+/=_-]{100,}' },
  { provider: 'age', source: 'AGE-SECRET-KEY-1[0-9A-Z]{58}' },
  { provider: 'Grafana', source: `(?:glsa_${A}{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,})` },
  { provider: 'New Relic', source: '(?:NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}|NRII-[A-Za-z0-9-]{32})' },
  { provider: 'Sentry', source: 'sntry(?:s_eyJ[A-Za-z0-9+/=_-]{60,}|u_[0-9a-f]{64})' },
  { provider: 'PostHog', source: `phx_${A}{40,}` },
  { provider: 'Dynatrace', source: `dt0[a-z][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}` },
  { provider: 'Prefect', source: `pn[ub]_${A}{36}` },
  { provider: 'Okta', source: `SSWS 00${W}{40}` },
  // Office and project tools
  { provider: 'Notion', source: `(?:ntn_${A}{40,}|secret_${A}{43})`, border: 'exact' },
  { provider: 'Linear', source: `lin_(?:api|oauth)_${A}{40,}` },
  { provider: 'Airtable', source: `pat${A}{14}\\.[0-9a-f]{64}` },
  { provider: 'Figma', source: `fig[a-z]{1,3}_${W}{40,}` },
  { provider: 'Asana', source: '[0-9]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}', border: 'exact' },
  { provider: 'Contentful', source: `CFPAT-${W}{43}` },
  { provider: 'HubSpot', source: `pat-(?:na|eu|ap)[0-9]-${UUID}` },
  { provider: 'Dropbox', source: `sl\\.(?:u\\.)?${W}{100,}` },
  { provider: 'Facebook', source: `EAA[A-Za-z]${A}{90,}` },
  { provider: 'Typeform', source: `tfp_${W}{40,}` },
  { provider: 'Mapbox', source: `[st]k\\.eyJ${W}{30,}\\.${W}{20,}` },
  // Tokens that belong to no provider. RFC 7519: header and claims are JSON objects, so both begin with eyJ.
  { provider: 'JSON Web Token', source: `eyJ${W}{8,240}\\.eyJ${W}{8,}(?:\\.${W}*)?` },
  // A longer header is known by its first member: alg, cty, enc, jku, jwk, kid, typ, x5c, x5t or x5u.
  {
    provider: 'JSON Web Token',
    source: `eyJ(?:hbGci|jdHki|lbmMi|qa3Ui|qd2si|raWQi|0eXAi|4NWMi|4NXQi|4NXUi)${W}{235,}(?:\\.${W}*){0,2}`,
  },
]

/**
 * A private key in the format of RFC 7468 or OpenSSH: the header line, then lines of base64. In a JSON string
 * the line ends are written as `\n`. The body may begin with the header fields of RFC 1421. The last line may
 * be short if the footer follows.
 */
export const PRIVATE_KEY = (() => {
  const line = String.raw`(?:(?:\s|\\[rn]|["'+,]){0,24}[A-Za-z0-9+/=]{16,})`
  const end = String.raw`(?:(?:\s|\\[rn]|["'+,]){0,24}[A-Za-z0-9+/=]{1,80})?(?:\s|\\[rn]|["'+,]){0,24}-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----`
  const headers = String.raw`(?:(?:\s|\\[rn]|["'+,]){1,24}[A-Z][A-Za-z-]{1,20}: [^\n\\]{1,80}){0,3}`
  return String.raw`-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----${headers}${line}+(?:${end})?`
})()

/** What comes before a value that is assigned to a name such as `api_key` or `password`. */
export const ASSIGNMENT = String.raw`(?i:api[_-]?key|apikey|access[_-]?key|secret[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|client[_-]?secret|private[_-]?key|signing[_-]?key|encryption[_-]?key|secret|passwd|password|token)["'\x60]?\s{0,3}(?::=|=>|[:=])\s{0,3}["'\x60]?`

/** What comes before a token, as in an `Authorization` header: the name of an authentication scheme. */
export const SCHEME = '(?i:bearer|basic|token) {1,2}'

/** A character of a value that has a name. */
export const VALUE_CHARACTER = '[A-Za-z0-9_.~+/=-]'
