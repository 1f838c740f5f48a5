import { Screen } from "../../parts/screen";

export default function Page() {
  return <Screen title="Agent workspace">{null}</Screen>;
}
